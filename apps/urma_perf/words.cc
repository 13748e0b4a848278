// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/words.h"

#include <fmt/format.h>

#include <cstring>

namespace urma::apps::perf {
namespace {

constexpr uint64_t swap_step =
    0x9e37'79b9'7f4a'7c15;  // odd, so that a value repeats only after 2^bits steps

uint64_t cut(uint64_t value, uint64_t bytes) {
  return bytes < sizeof value ? value & ((uint64_t{1} << 8 * bytes) - 1) : value;
}

}  // namespace

uint64_t Words::load(std::span<const std::byte> word) {
  const auto as = [&]<class Value>(Value value) -> uint64_t {
    std::memcpy(&value, word.data(), sizeof value);
    return value;
  };
  switch (word.size()) {
    case 1:
      return as(uint8_t{});
    case 2:
      return as(uint16_t{});
    case 4:
      return as(uint32_t{});
    default:
      return as(uint64_t{});
  }
}

Words::Words(Atomic atomic, uint64_t bytes, size_t count)
    : atomic_(atomic), bytes_(bytes), words_(count) {}

uint64_t Words::next(uint64_t value) const {
  return cut(value + (atomic_ == Atomic::compare_swap ? swap_step : 1), bytes_);
}

Words::Operands Words::advance(size_t word) {
  Word& one = words_[word];
  one.before = one.after;
  one.after = next(one.before);
  return {.expected = one.before, .operand = atomic_ == Atomic::compare_swap ? one.after : 1};
}

void Words::aim(Work& work, size_t word) {
  const Operands with = advance(word);
  work.expected_value = with.expected;
  work.immediate_value = with.operand;
}

void Words::check(size_t word, uint64_t fetched, Verdict& verdict) {
  Word& one = words_[word];
  if (fetched == one.before) return;
  verdict.count(
      fmt::format("word {}: 0x{:x} was fetched, and it was 0x{:x}", word, fetched, one.before));
  // A compare-swap that finds another value changes nothing.
  one.after = atomic_ == Atomic::compare_swap ? fetched : next(fetched);
}

}  // namespace urma::apps::perf
