// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/prng.h"
#include "wire/frame.h"

namespace urma::test {

// Memory in several pieces, and its content from the first byte to the last.
class Scattered {
 public:
  // Makes 1 to max_pieces pieces, some of them empty, with `bytes` bytes in total.
  Scattered(size_t bytes, Prng& prng) {
    std::vector<size_t> cuts{0, bytes};
    for (uint64_t i = prng.below(max_pieces); i > 0; --i) cuts.push_back(prng.below(bytes + 1));
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 1; i < cuts.size(); ++i) memory_.emplace_back(cuts[i] - cuts[i - 1]);
    for (auto& one : memory_) {
      for (std::byte& byte : one) byte = static_cast<std::byte>(prng.next());
      pieces_.push_back({one.data(), static_cast<uint32_t>(one.size())});
    }
  }

  std::span<const Piece> pieces() const { return pieces_; }
  std::vector<std::byte> flat() const {
    std::vector<std::byte> out;
    for (const auto& one : memory_) out.insert(out.end(), one.begin(), one.end());
    return out;
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Piece> pieces_;
};

// Returns the content of a frame's payload.
inline std::vector<std::byte> payload_of(const TxFrame& frame) {
  std::vector<std::byte> out;
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    const Piece& piece = frame.pieces[i];
    out.insert(out.end(), piece.data, piece.data + piece.bytes);
  }
  return out;
}

}  // namespace urma::test
