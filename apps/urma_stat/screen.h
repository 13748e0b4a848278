// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <optional>
#include <string>

namespace urma::apps::stat {

// The whole terminal, while an object of this class exists: a screen of its own without a cursor,
// and keys that are read one at a time and not shown. The destructor gives the terminal back as it
// was. Used by one thread; call `handle_signals` (apps/common/interrupt.h) before.
class Screen {
 public:
  // Throws a Failure if stdin and stdout are not a terminal that understands escape sequences.
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  size_t rows() const;
  size_t columns() const;
  // Shows the text from the first row on, in place of what was there. If it does not fit, the last
  // row says so. Throws a Failure if it cannot be written.
  void show(const std::string& text);
  // Waits until a key is pressed, and returns it; nothing at the end of `seconds`, after Ctrl-C,
  // and if the size of the terminal changes (then `resized` returns true, once).
  std::optional<char> key(double seconds);
  bool resized();

 private:
  termios before_{};
};

}  // namespace urma::apps::stat
