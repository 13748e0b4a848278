// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("bytes of every small number are copied, and no others") {
  for (size_t bytes = 0; bytes <= 200; ++bytes) {
    std::vector<std::byte> from(bytes);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i + 1);
    std::vector<std::byte> to(bytes + 2, std::byte{0xff});
    copy_bytes(to.data() + 1, from.data(), bytes);
    std::vector<std::byte> expected(bytes + 2, std::byte{0xff});
    std::copy(from.begin(), from.end(), expected.begin() + 1);
    REQUIRE(to == expected);
  }
}

}  // namespace
}  // namespace urma::test
