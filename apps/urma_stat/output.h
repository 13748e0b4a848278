// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace urma::apps::stat {

// Prints text on stdout; throws a Failure if not all of it can be written. On a terminal, a look
// can replace the previous one.
class Output {
 public:
  Output();

  bool terminal() const { return terminal_; }
  // The current width of the screen.
  size_t columns() const;
  void write(std::string_view text) const;
  // Replaces what is on the screen. If the text does not fit, the last line says so.
  void redraw(const std::string& text);

 private:
  bool terminal_ = false;
  bool drawn_ = false;
};

}  // namespace urma::apps::stat
