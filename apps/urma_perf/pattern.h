#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace urma::perf {

// The bytes that messages carry: f(seed, offset, iteration). The 64-bit word at place k of one long
// sequence is seed + k * step, and message i is a window into it that begins 64 bytes further than
// that of message i - 1, going round after `windows`. So a sender fills its memory once and sends
// from a sliding window, and a receiver checks with an addition per word and no second memory
// stream; a message of another iteration, offset or side differs in every word.
class Pattern {
 public:
  // A prime, so that memory that is reused every 2^n messages never gets its own bytes again.
  static constexpr uint32_t windows = 61;
  static constexpr size_t window_bytes = 64;
  static constexpr size_t source_bytes(size_t message) {
    return message + (windows - 1) * window_bytes;
  }

  explicit Pattern(uint64_t seed);

  // The part of the source that begins at this byte, a multiple of 8.
  void fill(std::span<std::byte> source, size_t at = 0) const;
  // Where the first wrong byte lies, if one does, in the part of a message that begins at this
  // byte, a multiple of 8.
  std::optional<size_t> mismatch(std::span<const std::byte> part, uint32_t window,
                                 size_t at = 0) const;
  // Which window the message claims to be, by its beginning; nothing if it is none.
  std::optional<uint32_t> window_of(std::span<const std::byte> message) const;

 private:
  uint64_t word(size_t place) const;

  uint64_t seed_;
};

// The result of checks: how many failed, and a description of the first failure.
struct Verdict {
  uint64_t wrong = 0;  // messages
  std::string first;   // what was seen, for people

  void count(std::string seen) {
    if (wrong++ == 0) first = std::move(seen);
  }
  void add(const Verdict& other) {
    if (wrong == 0) first = other.first;
    wrong += other.wrong;
  }
};

}  // namespace urma::perf
