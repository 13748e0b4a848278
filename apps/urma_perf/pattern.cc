// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/pattern.h"

#include <cstring>

namespace urma::apps::perf {
namespace {

constexpr uint64_t step = 0x9e3779b97f4a7c15;  // odd, so that no word repeats
constexpr size_t words_per_window = Pattern::window_bytes / sizeof(uint64_t);

uint64_t load(const std::byte* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// The inverse of `step` modulo 2^64, by Newton's iteration.
constexpr uint64_t inverse_of_step = [] {
  uint64_t inverse = step;
  for (int i = 0; i < 6; ++i) inverse *= 2 - step * inverse;
  return inverse;
}();
static_assert(step * inverse_of_step == 1);

}  // namespace

Pattern::Pattern(uint64_t seed) : seed_((seed + 1) * 0xd1342543de82ef95) {}

uint64_t Pattern::word(size_t place) const { return seed_ + place * step; }

void Pattern::fill(std::span<std::byte> source, size_t at) const {
  for (size_t i = 0; i < source.size(); i += sizeof(uint64_t)) {
    const uint64_t value = word((at + i) / sizeof value);
    std::memcpy(source.data() + i, &value, std::min(sizeof value, source.size() - i));
  }
}

std::optional<size_t> Pattern::mismatch(std::span<const std::byte> part, uint32_t window,
                                        size_t at) const {
  const size_t first = window * words_per_window + at / sizeof(uint64_t);
  const size_t whole = part.size() / sizeof(uint64_t);
  // There is no branch in the loop, so that the compiler can vectorise it.
  uint64_t difference = 0;
  for (size_t i = 0; i < whole; ++i) {
    difference |= load(part.data() + i * sizeof(uint64_t)) ^ word(first + i);
  }
  const uint64_t rest = word(first + whole);
  const size_t tail = part.size() % sizeof(uint64_t);
  const bool tail_right =
      tail == 0 || std::memcmp(part.data() + whole * sizeof rest, &rest, tail) == 0;
  if (difference == 0 && tail_right) return std::nullopt;
  for (size_t i = 0; i < part.size(); ++i) {
    const uint64_t right = word(first + i / sizeof(uint64_t));
    if (part[i] != reinterpret_cast<const std::byte*>(&right)[i % sizeof right]) return i;
  }
  return std::nullopt;
}

std::optional<uint32_t> Pattern::window_of(std::span<const std::byte> message) const {
  if (message.size() < sizeof(uint64_t)) {
    for (uint32_t window = 0; window < windows; ++window) {
      if (!mismatch(message, window)) return window;
    }
    return std::nullopt;
  }
  const uint64_t place = (load(message.data()) - seed_) * inverse_of_step;
  if (place % words_per_window != 0 || place / words_per_window >= windows) return std::nullopt;
  return static_cast<uint32_t>(place / words_per_window);
}

}  // namespace urma::apps::perf
