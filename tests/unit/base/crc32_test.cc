// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <string_view>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

// Computes the CRC by its definition, one bit at a time (UB 3.3).
uint32_t crc32_by_definition(uint32_t crc, std::span<const std::byte> data) {
  for (const std::byte byte : data) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return crc;
}

std::vector<std::byte> random_bytes(Prng& prng, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return bytes;
}

TEST_CASE("the checksum of \"123456789\" is the published check value of CRC-32") {
  constexpr std::string_view check = "123456789";
  for (const auto& implementation : crc32_implementations()) {
    INFO(implementation.name);
    CHECK(crc32_finish(implementation.update(crc32_start, check.data(), check.size())) ==
          0xcbf43926);
  }
  CHECK(crc32_finish(crc32_update(crc32_start, check.data(), check.size())) == 0xcbf43926);
  CHECK(crc32_finish(crc32_start) == 0);
}

TEST_CASE("every implementation agrees with the definition for every length and alignment") {
  Prng prng(1);
  const auto data = random_bytes(prng, 1300 + 64);
  for (size_t length = 0; length <= 1300; length += length < 600 ? 1 : 7) {
    const size_t offset = prng.below(64);
    const auto start = static_cast<uint32_t>(prng.next());
    const auto here = std::span(data).subspan(offset, length);
    const uint32_t expected = crc32_by_definition(start, here);
    INFO("length " << length << " offset " << offset);
    for (const auto& implementation : crc32_implementations()) {
      INFO(implementation.name);
      REQUIRE(implementation.update(start, here.data(), length) == expected);
    }
    REQUIRE(crc32_update(start, here.data(), length) == expected);
  }
}

TEST_CASE("a checksum made in pieces is the checksum of the whole") {
  Prng prng(2);
  const auto data = random_bytes(prng, 9000);
  const uint32_t whole = crc32_by_definition(crc32_start, data);
  for (const auto& implementation : crc32_implementations()) {
    INFO(implementation.name);
    REQUIRE(implementation.update(crc32_start, data.data(), data.size()) == whole);
    for (int round = 0; round < 100; ++round) {
      uint32_t crc = crc32_start;
      for (size_t at = 0; at < data.size();) {
        const size_t here =
            std::min<size_t>(prng.below(uint64_t{1} << prng.below(12)), data.size() - at);
        crc = implementation.update(crc, data.data() + at, here);
        at += here;
      }
      REQUIRE(crc == whole);
    }
  }
}

TEST_CASE("the portable implementation is always available, and the last of the list is used") {
  const auto list = crc32_implementations();
  REQUIRE_FALSE(list.empty());
  CHECK(std::string_view(list.front().name) == "portable");
}

}  // namespace
}  // namespace urma::test
