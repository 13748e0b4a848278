#pragma once

#include <string>
#include <string_view>

namespace urma::stat {

// Text on stdout, all of it; else a Failure. On a terminal a look can take the place of the one
// before.
class Output {
 public:
  Output();

  bool terminal() const { return terminal_; }
  // The current width of the screen.
  size_t columns() const;
  void write(std::string_view text) const;
  // On one screen: what does not fit is left out, and that is said.
  void redraw(const std::string& text);

 private:
  bool terminal_ = false;
  bool drawn_ = false;
};

}  // namespace urma::stat
