// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace urma::drivers::dpdk {

// The checksum of IP, UDP and ICMP (RFC 1071). The sum is that of native words, so its result has
// the byte order in which it must be stored.
class InternetSum {
 public:
  // Parts may have any size.
  InternetSum& add(std::span<const std::byte> part) {
    if (!odd_) {
      add_even(part);
      odd_ = part.size() % 2 != 0;
      return *this;
    }
    InternetSum sum;
    sum.add_even(part);
    sum.odd_ = part.size() % 2 != 0;
    return add(sum);
  }
  // Adds four bytes, after an even number of them.
  InternetSum& add_four(const std::byte* at) {
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    sum_ += word;
    return *this;
  }
  // Adds the sum of the bytes that follow.
  InternetSum& add(const InternetSum& behind) {
    // The bytes of a word behind an odd number of bytes have changed places.
    const uint16_t folded = behind.folded();
    sum_ += odd_ ? static_cast<uint16_t>(folded << 8 | folded >> 8) : behind.sum_;
    odd_ = odd_ != behind.odd_;
    return *this;
  }
  // Returns the sum itself, which is 0xffff for bytes that contain their checksum.
  uint16_t folded() const {
    const uint64_t sum = (sum_ & 0xffffffff) + (sum_ >> 32);
    const uint32_t word = static_cast<uint32_t>(sum) + static_cast<uint32_t>(sum >> 32);
    // The upper half becomes the sum of both halves, with the carry of the lower ones.
    return static_cast<uint16_t>((word + std::rotl(word, 16)) >> 16);
  }
  uint16_t checksum() const { return static_cast<uint16_t>(~folded()); }

 private:
  void add_even(std::span<const std::byte> part) {
    const std::byte* at = part.data();
    size_t left = part.size();
    uint64_t four[4];
    for (; left >= sizeof four; at += sizeof four, left -= sizeof four) {
      std::memcpy(four, at, sizeof four);
      for (const uint64_t word : four) sum_ += (word & 0xffffffff) + (word >> 32);
    }
    for (; left >= 4; at += 4, left -= 4) add_four(at);
    if (left == 0) return;
    uint32_t word = 0;
    std::memcpy(&word, at, left);
    sum_ += word;
  }

  uint64_t sum_ = 0;
  bool odd_ = false;  // an odd number of bytes was added
};

}  // namespace urma::drivers::dpdk
