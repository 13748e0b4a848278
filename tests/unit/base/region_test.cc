// SPDX-License-Identifier: Apache-2.0
#include "base/region.h"

#include <cstdint>
#include <utility>

#include "tests/catch.h"

namespace urma::test {
namespace {

uintptr_t address(const Region& region) { return reinterpret_cast<uintptr_t>(region.data()); }

TEST_CASE("a region reads as zeros everywhere, and keeps what is written") {
  constexpr size_t bytes = (1 << 20) + 3;
  Region region(bytes);
  REQUIRE(region.bytes() == bytes);
  CHECK(address(region) % 64 == 0);
  for (size_t i = 0; i < bytes; i += 511) REQUIRE(region.data()[i] == std::byte{0});
  region.data()[bytes - 1] = std::byte{7};
  CHECK(region.data()[bytes - 1] == std::byte{7});
}

TEST_CASE("address space takes no memory until it is touched") {
  Region region(size_t{1} << 36);
  region.data()[size_t{1} << 35] = std::byte{1};
  CHECK(region.data()[(size_t{1} << 36) - 1] == std::byte{0});
}

TEST_CASE("a region starts where it is asked to and ends inside its mapping") {
  for (const size_t alignment : {size_t{4096}, size_t{1} << 16, size_t{1} << 21}) {
    for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{1} << 21}) {
      const Region region = Region::try_make(bytes, alignment);
      REQUIRE(region.data() != nullptr);
      CHECK(region.bytes() == bytes);
      CHECK(address(region) % alignment == 0);
      region.data()[0] = std::byte{1};
      region.data()[bytes - 1] = std::byte{1};
    }
  }
}

TEST_CASE("a region of 0 bytes, or larger than the address space, is empty") {
  CHECK(Region::try_make(0, 4096).data() == nullptr);
  CHECK(Region::try_make(SIZE_MAX, 4096).data() == nullptr);
  CHECK(Region::try_make(SIZE_MAX - 4095, size_t{1} << 21).data() == nullptr);
  CHECK(Region::try_make(size_t{1} << 60, 4096).data() == nullptr);
  CHECK(Region(0).data() == nullptr);
  CHECK(Region::try_make(size_t{1} << 60, 4096).bytes() == 0);
}

TEST_CASE("a region moves without its memory moving") {
  Region one(4096);
  std::byte* const at = one.data();
  at[5] = std::byte{9};
  Region two(std::move(one));
  CHECK(two.data() == at);
  CHECK(one.data() == nullptr);
  CHECK(one.bytes() == 0);
  Region three(8192);
  three = std::move(two);
  CHECK(three.data() == at);
  CHECK(three.bytes() == 4096);
  CHECK(three.data()[5] == std::byte{9});
}

TEST_CASE("an array of a region has distinct elements, all zero") {
  RegionArray<uint64_t> array(1000);
  REQUIRE(array.size() == 1000);
  for (size_t i = 0; i < array.size(); ++i) {
    REQUIRE(array[i] == 0);
    array[i] = i;
  }
  for (size_t i = 0; i < array.size(); ++i) REQUIRE(array[i] == i);
  CHECK(&array[999] - array.data() == 999);
  CHECK(RegionArray<uint64_t>().size() == 0);
}

}  // namespace
}  // namespace urma::test
