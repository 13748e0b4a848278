#include "apps/urma_notify/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "apps/common/failure.h"
#include "apps/common/output.h"

namespace urma::notify {
namespace {

struct Letter {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: it is none in UTF-8
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

void say_line(const std::string& line) {
  static std::atomic_flag said;
  try {
    apps::print(printable(line) + "\n", "files go on, untold");
  } catch (const apps::Failure& failure) {
    if (!said.test_and_set()) complain(failure.what());
  }
}

void complain(std::string_view what) {
  apps::print_error(fmt::format("urma_notify: {}", printable(what)));
}

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

}  // namespace urma::notify
