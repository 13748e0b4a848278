// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "apps/urma_notify/lines.h"
#include "apps/urma_notify/transfer.h"

namespace urma::apps::notify {

// Returns a number of bytes as 1.5 MB.
std::string bytes_text(double bytes);

// How a sender reports: with several receivers each line names its receiver, and only one bar fits
// on a terminal.
struct Voice {
  std::string prefix{};
  bool lines = true;
  bool bar = true;

  void say(const std::string& line) const {
    if (lines) say_line(prefix + line);
  }
};

// Shows the progress of a file: as a bar on a terminal, as occasional lines elsewhere.
class Progress {
 public:
  Progress(const std::string& name, uint64_t bytes, const Voice& voice);

  // Starts at `bytes`, which the receiver already has.
  void begin(uint64_t bytes);
  void at(uint64_t bytes);
  // Prints the last line, with the average rate. Returns the seconds that the file took.
  double done();
  // Erases the bar, before other text is printed on the terminal.
  void wipe();

 private:
  std::string bar(uint64_t bytes) const;
  std::string line(uint64_t bytes) const;

  const Voice& voice_;
  const std::string name_;
  const uint64_t bytes_;
  const bool terminal_;
  uint64_t resumed_ = 0;
  uint64_t shown_ = 0;
  double rate_ = 0;  // bytes per second, over the last seconds
  bool on_screen_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point last_ = began_;
};

}  // namespace urma::apps::notify
