// SPDX-License-Identifier: Apache-2.0
#include "base/array_layout.h"

#include <array>
#include <cstdint>

#include "tests/catch.h"

namespace urma::test {
namespace {

struct Counts {
  size_t one = 1;
  size_t items;
  size_t bytes;
};
struct Twelve {
  uint32_t words[3];
};
using Layout = ArrayLayout<Counts, ArrayOf<uint64_t, &Counts::items>, ArrayOf<double, &Counts::one>,
                           ArrayOf<Twelve, &Counts::items, 2>, ArrayOf<std::byte, &Counts::bytes>>;

TEST_CASE("arrays follow each other in the order of their declaration, without gaps") {
  for (size_t items = 0; items < 5; ++items) {
    const Counts counts{.items = items, .bytes = 7};
    CHECK(Layout::offset<uint64_t>(counts) == 0);
    CHECK(Layout::offset<double>(counts) == 8 * items);
    CHECK(Layout::offset<Twelve>(counts) == 8 * items + 8);
    CHECK(Layout::offset<std::byte>(counts) == 8 * items + 8 + 24 * items);
    CHECK(Layout::bytes(counts) == 8 * items + 8 + 24 * items + 7);
  }
}

TEST_CASE("an array of a layout is found by its type in the block") {
  alignas(8) std::array<std::byte, 200> block{};
  const Counts counts{.items = 3, .bytes = 5};
  REQUIRE(Layout::bytes(counts) <= block.size());
  CHECK(reinterpret_cast<std::byte*>(Layout::begin<uint64_t>(block.data(), counts)) ==
        block.data());
  CHECK(reinterpret_cast<std::byte*>(Layout::begin<Twelve>(block.data(), counts)) ==
        block.data() + 32);
  CHECK(Layout::begin<std::byte>(block.data(), counts) == block.data() + 32 + 72);
}

}  // namespace
}  // namespace urma::test
