// SPDX-License-Identifier: Apache-2.0
#include "jetty/slicer.h"
#include "tests/catch.h"
#include "tests/unit/jetty/pieces.h"

namespace urma::test {
namespace {

using jetty::copy_out;
using jetty::copy_out_past_caches;
using jetty::gather;
using jetty::scatter;
using jetty::scatter_past_caches;

std::vector<std::byte> part(const std::vector<std::byte>& all, size_t offset, size_t bytes) {
  const auto first = all.begin() + static_cast<ptrdiff_t>(offset);
  return {first, first + static_cast<ptrdiff_t>(bytes)};
}

TEST_CASE("every range of scattered memory is gathered as if it lay in one piece") {
  Prng prng(1);
  for (int round = 0; round < 60; ++round) {
    const size_t size = prng.below(40);
    const Scattered memory(size, prng);
    const auto flat = memory.flat();
    for (uint32_t offset = 0; offset <= size; ++offset) {
      for (uint32_t bytes = 0; bytes <= size - offset; ++bytes) {
        TxFrame frame;
        gather(memory.pieces(), offset, bytes, frame);
        REQUIRE(payload_of(frame) == part(flat, offset, bytes));
        // Empty pieces are skipped: a frame holds only as many pieces as a work may have.
        for (unsigned i = 0; i < frame.piece_count; ++i) REQUIRE(frame.pieces[i].bytes > 0);
      }
    }
  }
}

TEST_CASE("gathering refers to memory without copying, behind pieces that the frame already has") {
  Prng prng(2);
  const Scattered memory(100, prng);
  std::byte first{1};
  TxFrame frame;
  frame.pieces[frame.piece_count++] = {&first, 1};
  gather(memory.pieces(), 0, 100, frame);
  CHECK(frame.pieces[0].data == &first);
  size_t at = 1;
  for (const Piece& piece : memory.pieces()) {
    if (piece.bytes == 0) continue;
    REQUIRE(at < frame.piece_count);
    CHECK(frame.pieces[at].data == piece.data);
    CHECK(frame.pieces[at].bytes == piece.bytes);
    ++at;
  }
  CHECK(at == frame.piece_count);
}

TEST_CASE("every range is scattered as if memory lay in one piece, and bytes around it stay") {
  Prng prng(3);
  for (int round = 0; round < 40; ++round) {
    const size_t size = prng.below(32);
    const Scattered memory(size, prng);
    for (uint32_t offset = 0; offset <= size; ++offset) {
      for (uint32_t bytes = 0; bytes <= size - offset; ++bytes) {
        auto expected = memory.flat();
        std::vector<std::byte> data(bytes);
        for (uint32_t i = 0; i < bytes; ++i) {
          data[i] = expected[offset + i] = static_cast<std::byte>(prng.next());
        }
        scatter(memory.pieces(), offset, data);
        REQUIRE(memory.flat() == expected);
        std::vector<std::byte> back(bytes);
        copy_out(memory.pieces(), offset, back);
        REQUIRE(back == data);
      }
    }
  }
}

// The ranges have some kilobytes, so that they contain whole cache lines.
TEST_CASE("copies that bypass the caches store every range where ordinary copies do") {
  Prng prng(4);
  for (int round = 0; round < 300; ++round) {
    const auto size = static_cast<uint32_t>(1 + prng.below(5000));
    const Scattered memory(size, prng);
    const auto offset = static_cast<uint32_t>(prng.below(size));
    const size_t bytes = prng.below(size - offset + 1);
    auto expected = memory.flat();
    std::vector<std::byte> back(bytes);
    copy_out_past_caches(memory.pieces(), offset, back);
    REQUIRE(back == part(expected, offset, bytes));
    for (size_t i = 0; i < bytes; ++i) {
      back[i] = expected[offset + i] = static_cast<std::byte>(prng.next());
    }
    scatter_past_caches(memory.pieces(), offset, back);
    REQUIRE(memory.flat() == expected);
  }
}

TEST_CASE("a slice takes as many packets as its bytes need, and one if it has no bytes") {
  for (const uint32_t packet_bytes : {1u, 3u, 1024u, 4096u}) {
    for (uint32_t bytes = 0; bytes <= 4 * packet_bytes; ++bytes) {
      uint32_t packets = 0;
      for (uint32_t left = bytes; left > 0; left -= std::min(left, packet_bytes)) ++packets;
      REQUIRE(transport::packets_of(bytes, packet_bytes) == std::max(packets, 1u));
    }
  }
}

}  // namespace
}  // namespace urma::test
