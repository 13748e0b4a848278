// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/common/failure.h"

namespace urma::apps {
namespace {

struct Letter {
  uint32_t code = 0;
  size_t bytes = 0;  // 0 if the text is not UTF-8
};

Letter first_letter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first < 0xc2   ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

bool harmless(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !control && !turns;
}

}  // namespace

void prepare_output() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest vacant descriptor, which is this one. It is opened in the wrong
    // direction, so that using it is still an error.
    const int how = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", how) != descriptor) break;
  }
  std::signal(SIGPIPE, SIG_IGN);
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void print(std::string_view text, std::string_view what) {
  if (write_all(STDOUT_FILENO, text)) return;
  throw Failure(Exit::error, fmt::format("{}: writing to stdout: {}. Fix: free some space, or let "
                                         "the next program of the pipe read all output",
                                         what, std::strerror(errno)));
}

void print_json(const nlohmann::json& whole) { print(whole.dump(2) + "\n", "--json"); }

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const size_t bytes = std::max<size_t>(letter.bytes, 1);
    out += letter.bytes > 0 && harmless(letter.code) ? text.substr(0, bytes) : "?";
    text.remove_prefix(bytes);
  }
  return out;
}

size_t terminal_columns(int descriptor) {
  winsize size{};
  return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void print_error(std::string_view line) { write_all(STDERR_FILENO, std::string(line) + "\n"); }

}  // namespace urma::apps
