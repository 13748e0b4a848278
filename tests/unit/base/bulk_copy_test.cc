// SPDX-License-Identifier: Apache-2.0
#include "base/bulk_copy.h"

#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("copy_past_caches copies exactly its range, for any alignment and length") {
  Prng prng(1);
  std::vector<std::byte> source(2000);
  for (std::byte& byte : source) byte = static_cast<std::byte>(prng.next());
  for (int turn = 0; turn < 20'000; ++turn) {
    const size_t bytes = prng.below(900);
    const size_t from = prng.below(source.size() - bytes);
    std::vector<std::byte> target(2000, std::byte{0xee});
    const size_t to = prng.below(target.size() - bytes);
    std::vector<std::byte> expected = target;
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<ptrdiff_t>(to));
    copy_past_caches(target.data() + to, source.data() + from, bytes);
    REQUIRE(target == expected);
  }
}

}  // namespace
}  // namespace urma::test
