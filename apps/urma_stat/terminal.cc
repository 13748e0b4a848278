// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace urma::apps::stat {
namespace {

constexpr std::string_view to_the_top = "\x1b[H";
constexpr std::string_view end_line = "\x1b[K\n";
constexpr std::string_view clear_below = "\x1b[J";

}  // namespace

bool can_redraw() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

winsize screen_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 1) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  return size;
}

std::string screenful(std::string_view text, const winsize& size) {
  std::string screen(to_the_top);
  for (unsigned row = 2; !text.empty(); ++row) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (row == size.ws_row && end + 1 < text.size()) {
      screen += std::string_view("... the rest does not fit").substr(0, size.ws_col);
      screen += end_line;
      break;
    }
    screen += text.substr(0, std::min<size_t>(end, size.ws_col));
    screen += end_line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return screen + std::string(clear_below);
}

}  // namespace urma::apps::stat
