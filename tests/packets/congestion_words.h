// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace urma::test {

[[noreturn]] inline void fail(const std::string& why) { throw std::runtime_error(why); }

inline uint64_t number_of(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    fail("\"" + std::string(text) + "\" is not a number");
  }
  return value;
}

inline uint64_t big_endian(const std::byte* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint64_t>(at[i]);
  return value;
}
inline void put(std::byte* at, size_t bytes, uint64_t value) {
  while (bytes-- > 0) {
    at[bytes] = static_cast<std::byte>(value);
    value >>= 8;
  }
}

// The words of a script about congestion: the fields of a CCI, and those of a CETPH in the forms of
// C-AQM and of the explicit rate. It reads and writes them bit by bit (docs/protocol.md, 16).
struct CongestionWords {
  bool congested = false;  // C
  bool increase = false;   // I
  bool switched = false;   // S
  bool last_hop = false;   // loc
  uint64_t hint = 0;       // hint=N
  uint64_t queue = 0;      // queue=N: UBQ
  uint64_t other = 0;      // cci=HEX: all bits of a CCI
  bool any = false;

  // Returns whether the word is one of these, and takes it.
  bool take(const std::string& word, uint64_t most_hint) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (bool* const flag = equals == std::string::npos ? flag_of(key) : nullptr) {
      *flag = true;
    } else if (key == "hint" && !value.empty()) {
      hint = bounded(key, number_of(value), most_hint);
    } else if (key == "queue" && !value.empty()) {
      queue = bounded(key, number_of(value), 63);
    } else if (key == "cci" && !value.empty()) {
      other = bounded(key, number_of(value, 16), 0xffff);
    } else {
      return false;
    }
    return any = true;
  }

  std::string text() const {
    std::string out;
    if (congested) out += " C";
    if (increase) out += " I";
    if (switched) out += " S";
    if (last_hop) out += " loc";
    if (hint != 0) out += " hint=" + std::to_string(hint);
    if (queue != 0) out += " queue=" + std::to_string(queue);
    return out;
  }

  // Mode 3 bits (0), Loc, S, Enable, C, I, Hint 8.
  uint16_t cci() const {
    if (!any || other != 0) return static_cast<uint16_t>(other);
    return static_cast<uint16_t>(last_hop << 12 | switched << 11 | 1 << 10 | congested << 9 |
                                 increase << 8 | hint);
  }
  static CongestionWords of_cci(uint16_t cci) {
    if ((cci >> 13) != 0 || (cci >> 10 & 1) == 0) fail("a CCI of another mode, or without Enable");
    return {.congested = (cci >> 9 & 1) != 0,
            .increase = (cci >> 8 & 1) != 0,
            .switched = (cci >> 11 & 1) != 0,
            .last_hop = (cci >> 12 & 1) != 0,
            .hint = cci & 0xffu};
  }

  // Byte 4 of a CETPH: UBQ 6 bits, Loc, I; byte 6 and 7: the Hint, which has S before it in the
  // form of the explicit rate.
  void write(std::span<std::byte, 8> cetph, bool rate) const {
    if (switched && !rate) fail("this form has no S. Fix: queue=1 or more says it");
    cetph[4] = static_cast<std::byte>(queue << 2 | uint64_t{last_hop} << 1 | uint64_t{increase});
    put(&cetph[6], 2, rate ? uint64_t{switched} << 15 | hint : hint);
  }
  static CongestionWords of_cetph(std::span<const std::byte, 8> cetph, bool rate) {
    const uint64_t first = big_endian(&cetph[4], 1);
    const uint64_t last = big_endian(&cetph[6], 2);
    return {.increase = (first & 1) != 0,
            .switched = rate && last >> 15 != 0,
            .last_hop = (first >> 1 & 1) != 0,
            .hint = rate ? last & 0x7fff : last,
            .queue = first >> 2};
  }

 private:
  bool* flag_of(std::string_view word) {
    if (word == "C") return &congested;
    if (word == "I") return &increase;
    if (word == "S") return &switched;
    return word == "loc" ? &last_hop : nullptr;
  }
  static uint64_t bounded(const std::string& key, uint64_t value, uint64_t most) {
    if (value > most) fail(key + " does not fit. Fix: at most " + std::to_string(most));
    return value;
  }
};

}  // namespace urma::test
