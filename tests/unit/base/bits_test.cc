// SPDX-License-Identifier: Apache-2.0
#include "base/bits.h"

#include <array>

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("numbers are stored most significant byte first, in as many bytes as are asked for") {
  std::array<std::byte, 8> bytes{};
  store_be<3>(bytes.data() + 1, 0xaabbccdd);
  const std::array<std::byte, 8> expected{std::byte{0}, std::byte{0xbb}, std::byte{0xcc},
                                          std::byte{0xdd}};
  CHECK(bytes == expected);
  CHECK(load_be<3>(bytes.data() + 1) == 0xbbccdd);
  store_be<8>(bytes.data(), 0x0123456789abcdef);
  CHECK(bytes[0] == std::byte{0x01});
  CHECK(bytes[7] == std::byte{0xef});
  CHECK(load_be<8>(bytes.data()) == 0x0123456789abcdef);
  CHECK(load_be<1>(bytes.data() + 7) == 0xef);
}

}  // namespace
}  // namespace urma::test
