// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace urma::apps::perf {

// The value of --rate: messages per second, as 5000, 20K or 1.5M, in powers of ten.
struct MessageRate {
  static constexpr double least = 0.1;
  static constexpr double most = 1e9;

  std::optional<double> read(std::string_view word) const;
  std::string valid() const;
};

// The times at which one of several threads is to send its messages, which do not depend on how
// long earlier messages take: message k of the thread is due k intervals after its first one. The
// threads take turns. Counts times in nanoseconds.
class Timetable {
 public:
  // `per_second`: the rate of all threads together.
  Timetable(double per_second, uint32_t thread, uint32_t threads);

  // Begins a round.
  void begin(int64_t time) { begin_ = time; }
  // Returns when message k of the round is due.
  int64_t time_of(uint64_t k) const;
  // Returns how many messages are due before this time.
  uint64_t due_before(int64_t time) const;

 private:
  double interval_;  // between messages of this thread, in nanoseconds
  double first_;     // from the beginning of a round to its first message
  int64_t begin_ = 0;
};

}  // namespace urma::apps::perf
