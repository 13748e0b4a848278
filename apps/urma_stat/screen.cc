// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/screen.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_stat/terminal.h"

namespace urma::apps::stat {
namespace {

constexpr std::string_view take_over = "\x1b[?1049h\x1b[?25l";  // other screen, no cursor
constexpr std::string_view give_back = "\x1b[?25h\x1b[?1049l";

std::atomic<bool> size_changed{false};
void note_size(int) { size_changed.store(true, std::memory_order_relaxed); }

}  // namespace

Screen::Screen() {
  if (!can_redraw() || tcgetattr(STDIN_FILENO, &before_) != 0) {
    throw Failure(Exit::error,
                  "stdin and stdout are not a terminal that can be redrawn. Fix: run it in a "
                  "terminal; for a file or a program: urma_stat --watch 1");
  }
  struct sigaction action {};
  action.sa_handler = note_size;  // without SA_RESTART: ends the sleep in `key`
  sigaction(SIGWINCH, &action, nullptr);
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 0;
  keys.c_cc[VTIME] = 0;
  // Ctrl-Z would leave the shell with this screen and without a cursor.
  keys.c_cc[VSUSP] = _POSIX_VDISABLE;
  tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  write_all(STDOUT_FILENO, take_over);
}

Screen::~Screen() {
  write_all(STDOUT_FILENO, give_back);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

size_t Screen::rows() const { return screen_size().ws_row; }
size_t Screen::columns() const { return screen_size().ws_col; }

void Screen::show(const std::string& text) { print(screenful(text, screen_size())); }

std::optional<char> Screen::key(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  while (!interrupted() && !size_changed.load(std::memory_order_relaxed)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    std::array<pollfd, 2> each{{{STDIN_FILENO, POLLIN, 0}, {interrupt_descriptor(), POLLIN, 0}}};
    if (poll(each.data(), each.size(), static_cast<int>(left)) <= 0 || each[0].revents == 0) {
      continue;
    }
    char pressed = 0;
    const ssize_t got = ::read(STDIN_FILENO, &pressed, 1);
    if (got == 1) return pressed;
    // The terminal is gone.
    if (got == 0 || errno != EINTR) return 'q';
  }
  return std::nullopt;
}

bool Screen::resized() { return size_changed.exchange(false); }

}  // namespace urma::apps::stat
