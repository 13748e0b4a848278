// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace urma::apps::notify {

// SHA-256 (FIPS 180-4) of bytes that come in pieces: what `sha256sum` prints. It compares files; it
// protects no secret. OpenSSL has one, too, but ./quickstart would have to install it for this
// alone.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // Returns the digest of all bytes so far as 64 digits. Nothing may be added afterwards.
  std::string hex();

  using State = std::array<uint32_t, 8>;
  // Adds whole blocks of 64 bytes.
  using Blocks = void (*)(State& state, const std::byte* bytes, size_t blocks);
  // For tests that compare the implementations.
  explicit Sha256(Blocks blocks) : blocks_(blocks) {}
  Sha256();

  static void portable(State& state, const std::byte* bytes, size_t blocks);
  // Returns the one that uses the processor's instructions for SHA; null if it has none.
  static Blocks accelerated();

 private:
  Blocks blocks_;
  State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  uint64_t bytes_ = 0;
};

}  // namespace urma::apps::notify
