// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace urma::fuzz {

// Checks a condition of a fuzzer's oracle, in every build. A violation aborts, which a fuzzer
// reports.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "oracle: not true that %s\n", what);
  std::abort();
}

// Takes an input apart from the front. After the end of the input, numbers are zero and chances are
// not taken, so every input is a complete script. Loops end when it is `empty`.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }

  template <class Number = uint8_t>
  Number take() {
    static_assert(std::is_unsigned_v<Number>);
    Number number = 0;
    const size_t there = rest_.size() < sizeof number ? rest_.size() : sizeof number;
    if (there > 0) std::memcpy(&number, rest_.data(), there);
    rest_ = rest_.subspan(there);
    return number;
  }
  // Returns 0 to limit - 1; limit > 0.
  uint32_t below(uint32_t limit) {
    return limit <= 256 ? take<uint8_t>() % limit : take<uint32_t>() % limit;
  }
  bool chance(uint32_t of_256) { return !empty() && take<uint8_t>() < of_256; }
  // Returns `right` in most cases, otherwise any number. So scripts run for long before something
  // goes wrong.
  template <class Number>
  Number mostly(Number right) {
    return chance(24) ? take<Number>() : right;
  }
  std::span<const std::byte> bytes(size_t most) {
    const auto front = rest_.first(rest_.size() < most ? rest_.size() : most);
    rest_ = rest_.subspan(front.size());
    return std::as_bytes(front);
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace urma::fuzz
