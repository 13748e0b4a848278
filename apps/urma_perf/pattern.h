// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace urma::apps::perf {

// The bytes of messages: f(seed, offset, iteration). They are windows of one long sequence, whose
// k-th 64-bit word is seed + k * step. The window of message i begins 64 bytes behind that of
// message i - 1, and wraps after `windows`. So a sender fills its memory once and sends from a
// sliding window, and a receiver checks a message with an addition per word, without reading other
// memory. A message of another iteration, offset or side differs in every word.
class Pattern {
 public:
  // A prime number, so that memory that is reused every 2^n messages never receives the same bytes
  // again.
  static constexpr uint32_t windows = 61;
  static constexpr size_t window_bytes = 64;
  static constexpr size_t source_bytes(size_t message) {
    return message + (windows - 1) * window_bytes;
  }

  explicit Pattern(uint64_t seed);

  // Fills the part of the source that begins at byte `at`, a multiple of 8.
  void fill(std::span<std::byte> source, size_t at = 0) const;
  // Checks the part of a message that begins at byte `at`, a multiple of 8. Returns the position of
  // the first wrong byte, if there is one.
  std::optional<size_t> mismatch(std::span<const std::byte> part, uint32_t window,
                                 size_t at = 0) const;
  // Returns the window that the first bytes of the message belong to; nothing if there is none.
  std::optional<uint32_t> window_of(std::span<const std::byte> message) const;

 private:
  uint64_t word(size_t place) const;

  uint64_t seed_;
};

// The result of checks: the number of failures, and a description of the first.
struct Verdict {
  uint64_t wrong = 0;  // wrong messages
  std::string first;   // description of the first wrong one, for people

  void count(std::string seen) {
    if (wrong++ == 0) first = std::move(seen);
  }
  void add(const Verdict& other) {
    if (wrong == 0) first = other.first;
    wrong += other.wrong;
  }
};

}  // namespace urma::apps::perf
