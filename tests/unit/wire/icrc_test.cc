// SPDX-License-Identifier: Apache-2.0
#include "wire/icrc.h"

#include <set>
#include <vector>

#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/unit/random_headers.h"

namespace urma::test {
namespace {

// Verifies with a prefix that has cached results and with a new one: their results must agree.
bool verify(std::span<const std::byte> packet, const Endpoint& from, const Endpoint& to) {
  static IcrcPrefix remembers;
  IcrcPrefix forgets;
  const bool valid = verify(packet, from, to, forgets);
  REQUIRE(verify(packet, from, to, remembers) == valid);
  return valid;
}

Endpoint random_endpoint(Prng& prng, bool four) {
  const Eid address =
      four ? ipv4(random8(prng), random8(prng), random8(prng), random8(prng)) : random_eid(prng);
  return {address, static_cast<uint16_t>(prng.between(1, 65535))};
}

struct Sealed {
  std::vector<std::byte> packet;
  Endpoint from;
  Endpoint to;
  bool valid() const { return verify(packet, from, to); }
};

// Makes a frame with a head, several pieces and padding, sealed and written to one block of memory.
Sealed random_packet(Prng& prng, bool four) {
  static drivers::FramePool pool(1);
  static IcrcPrefix prefix;
  Sealed out{.packet = {}, .from = random_endpoint(prng, four), .to = random_endpoint(prng, four)};
  std::vector<std::vector<std::byte>> pieces(prng.below(5));
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  frame->to = out.to;
  frame->head_bytes = static_cast<uint8_t>(prng.between(16, 80));
  for (size_t i = 0; i < frame->head_bytes; ++i) frame->head[i] = std::byte{random8(prng)};
  frame->piece_count = frame->tail_bytes = 0;
  for (auto& piece : pieces) {
    piece.resize(prng.below(60));
    for (std::byte& byte : piece) byte = std::byte{random8(prng)};
    frame->pieces[frame->piece_count++] = {piece.data(), static_cast<uint32_t>(piece.size())};
  }
  frame->tail_bytes = static_cast<uint8_t>(-frame->bytes() & 3);
  frame->tail.fill(std::byte{0});
  seal(*frame, out.from, prefix);
  out.packet.resize(frame->bytes());
  drivers::flatten(*frame, out.packet.data());
  pool.take_back(frame);
  return out;
}

TEST_CASE("a sealed packet verifies, however its payload was divided in memory") {
  Prng prng(1);
  for (int round = 0; round < 500; ++round) {
    const Sealed sealed = random_packet(prng, round % 2 == 0);
    REQUIRE(sealed.packet.size() % 4 == 0);
    REQUIRE(sealed.valid());
  }
}

TEST_CASE("a packet does not verify if any bit of it or of the addresses is flipped") {
  Prng prng(2);
  for (int round = 0; round < 6; ++round) {
    const bool four = round % 2 == 0;
    Sealed sealed = random_packet(prng, four);
    const auto flip_all = [&](std::span<std::byte> bytes, size_t first) {
      for (size_t bit = first * 8; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        REQUIRE_FALSE(sealed.valid());
        bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      }
    };
    flip_all(sealed.packet, 0);
    flip_all(sealed.from.address.bytes, four ? 12 : 0);
    flip_all(sealed.to.address.bytes, four ? 12 : 0);
    flip_all(std::as_writable_bytes(std::span(&sealed.from.port, 1)), 0);
    flip_all(std::as_writable_bytes(std::span(&sealed.to.port, 1)), 0);
    REQUIRE(sealed.valid());
  }
}

TEST_CASE("a packet that is cut, extended, or sent back to its sender does not verify") {
  Prng prng(3);
  for (int round = 0; round < 20; ++round) {
    const Sealed sealed = random_packet(prng, round % 2 == 0);
    for (size_t size = 0; size < sealed.packet.size(); ++size) {
      REQUIRE_FALSE(verify(std::span(sealed.packet).first(size), sealed.from, sealed.to));
    }
    auto longer = sealed.packet;
    longer.insert(longer.begin() + 16, 4, std::byte{0});
    CHECK_FALSE(verify(longer, sealed.from, sealed.to));
    CHECK_FALSE(verify(sealed.packet, sealed.to, sealed.from));
  }
}

// UB 3.3
TEST_CASE("behind a switch the ICRC covers both CNAs, and no port") {
  Prng prng(5);
  IcrcPrefix prefix;
  const Endpoint from{cna_address(0x123456), 1}, to{cna_address(0xabcdef), 2};
  const uint32_t crc = prefix(from, to, 20);
  for (unsigned bit = 0; bit < 24; ++bit) {
    const Endpoint other{cna_address(0xabcdef ^ 1u << bit), 2};
    CHECK(prefix(from, other, 20) != crc);
    const Endpoint sender{cna_address(0x123456 ^ 1u << bit), 1};
    CHECK(prefix(sender, to, 20) != crc);
  }
  CHECK(prefix({from.address, 3}, {to.address, 4}, 20) == crc);
  CHECK(prefix(to, from, 20) != crc);
}

TEST_CASE("an empty packet, or one shorter than an ICRC, never verifies") {
  const Endpoint here{ipv4(127, 0, 0, 1), 4792};
  const std::vector<std::byte> zeros(4);
  for (size_t size = 0; size <= 4; ++size) {
    CHECK_FALSE(verify(std::span(zeros).first(size), here, here));
  }
}

TEST_CASE("a result cached for one route and length is not used for another") {
  Prng prng(4);
  std::vector<Endpoint> ends;
  for (int i = 0; i < 3; ++i) ends.push_back(random_endpoint(prng, true));
  for (int i = 0; i < 3; ++i) ends.push_back(random_endpoint(prng, false));
  std::set<uint32_t> seen;
  IcrcPrefix remembers;
  for (int round = 0; round < 3; ++round) {
    for (const Endpoint& from : ends) {
      for (const Endpoint& to : ends) {
        if (from.is_ipv4() != to.is_ipv4()) continue;
        for (const size_t bytes : {20, 36, 52, 53, 1044, 1060}) {
          IcrcPrefix forgets;
          const uint32_t crc = forgets(from, to, bytes);
          REQUIRE(remembers(from, to, bytes) == crc);
          REQUIRE(seen.insert(crc).second == (round == 0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
