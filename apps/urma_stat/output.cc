#include "apps/urma_stat/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "apps/common/output.h"

namespace urma::apps::stat {
namespace {

constexpr const char* clear_screen = "\x1b[2J";
constexpr const char* to_the_top = "\x1b[H";
constexpr const char* end_line = "\x1b[K\n";
constexpr const char* clear_below = "\x1b[J";

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

}  // namespace

Output::Output() : terminal_(can_redraw()) {}

void Output::write(std::string_view text) const { apps::print(text); }

size_t Output::columns() const { return screen_size().ws_col; }

void Output::redraw(const std::string& text) {
  const winsize size = screen_size();
  std::string screen = drawn_ ? "" : clear_screen;
  screen += to_the_top;
  drawn_ = true;
  std::string_view rest = text;
  for (unsigned row = 2; !rest.empty(); ++row) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (row == size.ws_row && end + 1 < rest.size()) {
      screen += "... the rest does not fit" + std::string(end_line);
      break;
    }
    screen += rest.substr(0, std::min<size_t>(end, size.ws_col));
    screen += end_line;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  write(screen + clear_below);
}

}  // namespace urma::apps::stat
