#include "memseg/segment_table.h"

#include <array>
#include <set>

#include "tests/catch.h"

namespace urma::test {
namespace {

using memseg::SegmentTable;
using memseg::within;

constexpr TokenValue token{0x1234abcd};
constexpr Rights read_write = Rights::read | Rights::write;

struct OneSegment {
  std::array<std::byte, 4096> memory{};
  SegmentTable table{8};
  TokenId id{};
  uint64_t base = reinterpret_cast<uint64_t>(memory.data());

  OneSegment() {
    REQUIRE(table.add({.base = memory.data(), .bytes = 4096, .token = token, .rights = read_write},
                      id));
  }
  bool allowed(uint64_t address, uint64_t bytes) const {
    return table.check(id, token, address, bytes, Rights::read) != nullptr;
  }
};

TEST_CASE("an access inside its segment finds the memory it names") {
  OneSegment one;
  for (const uint64_t offset : {0, 1, 100, 4095}) {
    CHECK(one.table.check(one.id, token, one.base + offset, 1, Rights::write) ==
          one.memory.data() + offset);
  }
  CHECK(one.allowed(one.base, 4096));
}

TEST_CASE("one byte before, one behind, and one too many are refused") {
  OneSegment one;
  CHECK_FALSE(one.allowed(one.base - 1, 1));
  CHECK_FALSE(one.allowed(one.base - 1, 2));
  CHECK_FALSE(one.allowed(one.base - 1, 4097));
  CHECK_FALSE(one.allowed(one.base, 4097));
  CHECK_FALSE(one.allowed(one.base + 1, 4096));
  CHECK_FALSE(one.allowed(one.base + 4095, 2));
  CHECK_FALSE(one.allowed(one.base + 4096, 1));
  CHECK(one.allowed(one.base + 1, 4095));
  CHECK(one.allowed(one.base + 4095, 1));
}

TEST_CASE("a range whose end wraps round the address space is refused") {
  OneSegment one;
  CHECK_FALSE(one.allowed(one.base, UINT64_MAX));
  CHECK_FALSE(one.allowed(one.base + 1, UINT64_MAX));
  CHECK_FALSE(one.allowed(one.base + 4095, UINT64_MAX - one.base - 4094));
  CHECK_FALSE(one.allowed(one.base + 10, UINT64_MAX - 9));  // ends at base
  CHECK_FALSE(one.allowed(UINT64_MAX, 1));
  CHECK_FALSE(one.allowed(UINT64_MAX, UINT64_MAX));
  CHECK_FALSE(one.allowed(0, one.base + 1));
}

TEST_CASE("ranges are compared as sets of addresses would be, at both ends of the space") {
  // An address space of 32 bytes, moved to where base or size is near its 64-bit end.
  for (const uint64_t origin : {uint64_t{0}, UINT64_MAX - 31}) {
    for (uint64_t base = 0; base < 32; ++base) {
      for (uint64_t size = 0; size <= 32 - base; ++size) {
        for (uint64_t address = 0; address < 32; ++address) {
          for (uint64_t bytes = 1; bytes < 40; ++bytes) {
            const bool expected = address >= base && address + bytes <= base + size;
            REQUIRE(within(origin + base, size, origin + address, bytes) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("a token that differs in any one bit is refused") {
  OneSegment one;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const TokenValue other{number(token) ^ 1u << bit};
    CHECK(one.table.check(one.id, other, one.base, 1, Rights::read) == nullptr);
  }
}

TEST_CASE("a right that the segment does not grant is refused, alone or among others") {
  std::array<std::byte, 16> memory{};
  const auto base = reinterpret_cast<uint64_t>(memory.data());
  for (unsigned granted = 0; granted < 8; ++granted) {
    SegmentTable table(1);
    TokenId id{};
    REQUIRE(table.add({memory.data(), 16, token, static_cast<Rights>(granted)}, id));
    for (unsigned wanted = 1; wanted < 8; ++wanted) {
      INFO("granted " << granted << " wanted " << wanted);
      const bool allowed = table.check(id, token, base, 16, static_cast<Rights>(wanted)) != nullptr;
      CHECK(allowed == ((wanted & ~granted) == 0));
    }
  }
}

TEST_CASE("an identifier that names nothing is refused, whatever else is right") {
  OneSegment one;
  for (const uint32_t id : {1u, 7u, 8u, 9u, id_limit - 1, id_limit, UINT32_MAX}) {
    CHECK(one.table.check(TokenId(id), token, one.base, 1, Rights::read) == nullptr);
    CHECK(one.table.check(TokenId(id), TokenValue{}, 0, 1, Rights::local_only) == nullptr);
    CHECK_FALSE(one.table.remove(TokenId(id)));
  }
  REQUIRE(one.table.remove(one.id));
  CHECK_FALSE(one.allowed(one.base, 1));
  CHECK_FALSE(one.table.remove(one.id));
  CHECK(one.table.size() == 0);
}

TEST_CASE("an identifier rests until all others have been used") {
  constexpr uint32_t capacity = 5;
  SegmentTable table(capacity);
  std::byte memory{};
  const SegmentTable::Segment segment{&memory, 1, token, read_write};
  TokenId id{};
  std::array<uint32_t, 3> in_use;
  for (uint32_t& mine : in_use) {
    REQUIRE(table.add(segment, id));
    mine = number(id);
  }
  CHECK(in_use == std::array{0u, 1u, 2u});
  for (const uint32_t mine : {1u, 0u, 2u}) REQUIRE(table.remove(TokenId(mine)));
  // Those never used first, then the others in the order in which they were freed.
  for (const uint32_t expected : {3u, 4u, 1u, 0u, 2u}) {
    REQUIRE(table.add(segment, id));
    CHECK(number(id) == expected);
  }
  CHECK_FALSE(table.add(segment, id));
  CHECK(table.size() == capacity);
  table.clear();
  CHECK(table.size() == 0);
  std::set<uint32_t> again;
  while (table.add(segment, id)) CHECK(again.insert(number(id)).second);
  CHECK(again == std::set<uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a table of nothing refuses everything") {
  SegmentTable table(0);
  TokenId id{};
  std::byte memory{};
  CHECK_FALSE(table.add({&memory, 1, token, read_write}, id));
  CHECK_FALSE(table.remove(TokenId(0)));
  CHECK(table.check(TokenId(0), token, 0, 1, Rights::read) == nullptr);
}

}  // namespace
}  // namespace urma::test
