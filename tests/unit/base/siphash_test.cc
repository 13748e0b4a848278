// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <array>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

// Computes SipHash-2-4 of bytes, as section 2 of the paper describes it. The library's version
// takes whole words only, so the example of the paper (15 bytes) checks this one, and this one
// checks the library's.
uint64_t siphash_of_bytes(uint64_t key0, uint64_t key1, std::vector<uint8_t> message) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d;
  uint64_t v2 = key0 ^ 0x6c7967656e657261, v3 = key1 ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13);
      v3 = std::rotl(v3, 16);
      v1 ^= v0;
      v3 ^= v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17);
      v3 = std::rotl(v3, 21);
      v1 ^= v2;
      v3 ^= v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto length = static_cast<uint8_t>(message.size());
  while (message.size() % 8 != 7) message.push_back(0);
  message.push_back(length);
  for (size_t at = 0; at < message.size(); at += 8) {
    uint64_t word = 0;
    for (size_t i = 8; i-- > 0;) word = word << 8 | message[at + i];
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

// The key 00 01 02 ... 0f; the messages also consist of the bytes 00 01 02 ...
constexpr uint64_t key0 = 0x0706050403020100;
constexpr uint64_t key1 = 0x0f0e0d0c0b0a0908;

std::vector<uint8_t> counting(size_t bytes) {
  std::vector<uint8_t> message(bytes);
  for (size_t i = 0; i < bytes; ++i) message[i] = static_cast<uint8_t>(i);
  return message;
}

TEST_CASE("the test's own SipHash gives the result of the paper's example") {
  CHECK(siphash_of_bytes(key0, key1, counting(15)) == 0xa129ca6149be45e5);
}

TEST_CASE("whole words hash to the test vectors of the reference implementation") {
  constexpr uint64_t expected[] = {0x726fdb47dd0e0e31, 0x93f5f5799a932462, 0x3f2acc7f57c29bdb,
                                   0xb8ad50c6f649af94, 0x7127512f72f27cce, 0x0e3ea96b5304a7d0,
                                   0xe612a3cb9ecba951, 0xb78dbfaf3a8d83bd};
  std::vector<uint64_t> words;
  for (size_t count = 0; count < std::size(expected); ++count) {
    INFO(count << " words");
    CHECK(SipHash(key0, key1)(words) == expected[count]);
    CHECK(siphash_of_bytes(key0, key1, counting(count * 8)) == expected[count]);
    words.push_back(key0 + 0x0808080808080808 * count);
  }
}

TEST_CASE("words hash like their bytes, least significant first, under any key") {
  Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    const uint64_t k0 = prng.next(), k1 = prng.next();
    std::vector<uint64_t> words(prng.below(12));
    std::vector<uint8_t> bytes;
    for (uint64_t& word : words) {
      word = prng.next();
      for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(word >> 8 * i));
    }
    REQUIRE(SipHash(k0, k1)(words) == siphash_of_bytes(k0, k1, bytes));
  }
}

TEST_CASE("each bit of both keys changes the hash") {
  const std::array<uint64_t, 2> words{1, 2};
  std::set<uint64_t> seen{SipHash(key0, key1)(words)};
  for (int bit = 0; bit < 64; ++bit) {
    CHECK(seen.insert(SipHash(key0 ^ uint64_t{1} << bit, key1)(words)).second);
    CHECK(seen.insert(SipHash(key0, key1 ^ uint64_t{1} << bit)(words)).second);
  }
}

}  // namespace
}  // namespace urma::test
