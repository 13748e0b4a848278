// SPDX-License-Identifier: Apache-2.0
#include "memseg/segment_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using memseg::SegmentTable;
using memseg::within;
using Added = SegmentTable::Added;

constexpr Rights read_write = Rights::read | Rights::write;

struct OneSegment {
  std::array<std::byte, 4096> memory{};
  SegmentTable table{8, SipHash(1, 2)};
  SegmentTable::Made made;
  TokenId id;
  TokenValue token;
  uint64_t base = reinterpret_cast<uint64_t>(memory.data());

  explicit OneSegment(TokenPolicy policy = TokenPolicy::plain_text) {
    REQUIRE(table.add(segment(), policy, made) == Added::added);
    id = made.token.id;
    token = made.token.value;
  }
  SegmentTable::Segment segment() {
    return {.base = memory.data(), .bytes = 4096, .rights = read_write};
  }
  bool allowed(uint64_t address, uint64_t bytes) const {
    return table.check(id, token, address, bytes, Rights::read) != nullptr;
  }
  bool opens(TokenValue value) const {
    return table.check(id, value, base, 1, Rights::read) != nullptr;
  }
  void remove() { table.release(table.withdraw(made.segment, false)); }
};

TEST_CASE("an access inside its segment finds the memory it names") {
  OneSegment one;
  for (const uint64_t offset : {0, 1, 100, 4095}) {
    CHECK(one.table.check(one.id, one.token, one.base + offset, 1, Rights::write) ==
          one.memory.data() + offset);
  }
  CHECK(one.allowed(one.base, 4096));
}

TEST_CASE("an access to a guarded segment says that its memory may be unmapped") {
  OneSegment one;
  const auto access = [&](const SegmentTable::Made& made) {
    return one.table.access(made.token.id, made.token.value, one.base + 8, 8, Rights::read);
  };
  SegmentTable::Segment segment = one.segment();
  segment.guarded = true;
  SegmentTable::Made guarded;
  REQUIRE(one.table.add(segment, TokenPolicy::plain_text, guarded) == Added::added);
  CHECK(access(guarded).guarded);
  CHECK(access(guarded).at == one.memory.data() + 8);
  CHECK_FALSE(access(one.made).guarded);
  guarded.token.value = TokenValue(number(guarded.token.value) ^ 1);
  CHECK(access(guarded).at == nullptr);
}

TEST_CASE("accesses that begin before the segment or end behind it are refused") {
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
  CHECK_FALSE(one.allowed(one.base + 10, UINT64_MAX - 9));  // the end wraps around to `base`
  CHECK_FALSE(one.allowed(UINT64_MAX, 1));
  CHECK_FALSE(one.allowed(UINT64_MAX, UINT64_MAX));
  CHECK_FALSE(one.allowed(0, one.base + 1));
}

TEST_CASE("bounds are checked correctly at both ends of the address space") {
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

TEST_CASE("a token that differs in a single bit is refused") {
  OneSegment one;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const TokenValue other{number(one.token) ^ 1u << bit};
    CHECK(one.table.check(one.id, other, one.base, 1, Rights::read) == nullptr);
  }
}

TEST_CASE("a right that the segment does not grant is refused, alone or together with others") {
  std::array<std::byte, 16> memory{};
  const auto base = reinterpret_cast<uint64_t>(memory.data());
  for (unsigned granted = 0; granted < 8; ++granted) {
    SegmentTable table(1, SipHash(3, 4));
    SegmentTable::Made made;
    const SegmentTable::Segment segment{memory.data(), 16, static_cast<Rights>(granted)};
    REQUIRE(table.add(segment, TokenPolicy::plain_text, made) == Added::added);
    for (unsigned wanted = 1; wanted < 8; ++wanted) {
      INFO("granted " << granted << " wanted " << wanted);
      const bool allowed = table.check(made.token.id, made.token.value, base, 16,
                                       static_cast<Rights>(wanted)) != nullptr;
      CHECK(allowed == ((wanted & ~granted) == 0));
    }
  }
}

TEST_CASE("an unknown identifier is refused, whatever else is right") {
  OneSegment one;
  for (uint32_t id : {0u, 1u, 7u, 8u, id_limit - 1, id_limit, UINT32_MAX}) {
    if (TokenId(id) == one.id) continue;
    CHECK(one.table.check(TokenId(id), one.token, one.base, 1, Rights::read) == nullptr);
    CHECK(one.table.check(TokenId(id), TokenValue{}, 0, 1, Rights::local_only) == nullptr);
    CHECK_FALSE(one.table.names(TokenId(id), TokenValue{}));
    CHECK_FALSE(one.table.unchecked(TokenId(id)));
  }
  one.remove();
  CHECK_FALSE(one.allowed(one.base, 1));
  CHECK_FALSE(one.table.rotate(one.made.segment));
  CHECK_FALSE(one.table.retire(one.made.segment));
  CHECK(one.table.withdraw(one.made.segment, true) == SegmentTable::none);
  CHECK(one.table.size() == 0);
}

TEST_CASE("while a token is replaced both are valid, and then only the newer one") {
  OneSegment one;
  const TokenValue first = one.token;
  REQUIRE(one.table.rotate(one.made.segment));
  const SegmentTable::Token token = one.table.token(one.made.segment);
  CHECK(token.older == first);
  CHECK(token.value != first);
  CHECK((one.opens(first) && one.opens(token.value)));
  CHECK_FALSE(one.table.rotate(one.made.segment));  // there are two tokens already
  REQUIRE(one.table.retire(one.made.segment));
  CHECK_FALSE(one.opens(first));
  CHECK(one.opens(token.value));
  CHECK(one.table.rotate(one.made.segment));
  CHECK_FALSE(one.opens(first));
}

TEST_CASE("a segment without a token accepts any, but still checks bounds and rights") {
  OneSegment one(TokenPolicy::none);
  CHECK(one.table.unchecked(one.id));
  CHECK((one.opens(TokenValue{0}) && one.opens(TokenValue{0xffff'ffff})));
  CHECK_FALSE(one.table.rotate(one.made.segment));
  CHECK(one.table.check(one.id, TokenValue{1}, one.base, 1, Rights::atomic) == nullptr);
  CHECK(one.table.check(one.id, TokenValue{1}, one.base, 4097, Rights::read) == nullptr);
  one.remove();
  CHECK_FALSE(one.opens(TokenValue{0}));
  CHECK_FALSE(one.table.unchecked(one.id));
}

TEST_CASE("segments of one TokenID are found by address, and withdrawn alone or together") {
  std::vector<std::byte> memory(1 << 20);
  SegmentTable table(1000, SipHash(5, 6));
  const auto segment = [&](uint32_t i) {
    return SegmentTable::Segment{memory.data() + 64 * i, 60, read_write};
  };
  std::vector<SegmentTable::Made> made(1000);
  REQUIRE(table.add(segment(0), TokenPolicy::plain_text, made[0]) == Added::added);
  for (uint32_t i = 1; i < 1000; ++i) {
    REQUIRE(table.join(made[i / 2].segment, segment(i), made[i]) == Added::added);
  }
  const TokenId id = made[999].token.id;
  const TokenValue token = made[0].token.value;
  const auto at = [&](uint32_t offset, uint64_t bytes) {
    const uint64_t address = reinterpret_cast<uint64_t>(memory.data()) + offset;
    return table.check(id, token, address, bytes, Rights::write);
  };
  for (uint32_t i = 0; i < 1000; ++i) {
    REQUIRE(at(64 * i, 60) == memory.data() + 64 * i);
    REQUIRE(at(64 * i + 59, 1) != nullptr);
    REQUIRE(at(64 * i + 59, 2) == nullptr);
    REQUIRE(at(64 * i + 60, 1) == nullptr);
  }
  REQUIRE(table.rotate(made[400].segment));
  CHECK(table.token(made[7].segment).older == token);
  for (uint32_t i = 0; i < 1000; i += 3) table.release(table.withdraw(made[i].segment, false));
  for (uint32_t i = 0; i < 1000; ++i) REQUIRE((at(64 * i, 60) != nullptr) == (i % 3 != 0));
  CHECK(table.size() == 666);
  const uint32_t all = table.withdraw(made[1].segment, true);
  for (uint32_t i = 0; i < 1000; ++i) REQUIRE(at(64 * i, 1) == nullptr);
  CHECK(table.size() == 666);  // still withdrawn and not yet released
  CHECK(table.join(made[1].segment, segment(0), made[0]) == Added::gone);
  table.release(all);
  CHECK(table.size() == 0);
}

// S5. A former token of an identifier is invalid, however often the identifier is used again.
TEST_CASE("an identifier is reused after all others, and its former tokens stay invalid",
          "[numbers]") {
  SegmentTable table(3, SipHash(7, 8));
  std::byte memory{};
  const SegmentTable::Segment segment{&memory, 1, read_write};
  const auto address = reinterpret_cast<uint64_t>(&memory);
  std::vector<uint32_t> freed_at(id_limit, 0);
  std::vector<std::array<uint32_t, 2>> had(id_limit);
  uint32_t shortest = UINT32_MAX;
  SegmentTable::Made kept;
  REQUIRE(table.add(segment, TokenPolicy::plain_text, kept) == Added::added);
  uint32_t wrong = 0;
  for (uint32_t i = 1; i <= 2 * (id_limit - 1); ++i) {
    SegmentTable::Made made;
    wrong += table.add(segment, TokenPolicy::plain_text, made) != Added::added;
    const uint32_t id = number(made.token.id);
    wrong += made.token.id == kept.token.id;
    if (freed_at[id] != 0) shortest = std::min(shortest, i - freed_at[id]);
    const uint32_t times = (i - 1) / (id_limit - 1);
    for (uint32_t earlier = 0; earlier < times; ++earlier) {
      const TokenValue old{had[id][earlier]};
      wrong += table.check(made.token.id, old, address, 1, Rights::read) != nullptr;
    }
    had[id][times] = number(made.token.value);
    table.release(table.withdraw(made.segment, false));
    freed_at[id] = i;
  }
  CHECK(wrong == 0);
  CHECK(shortest == id_limit - 1);
  CHECK(shortest >= 1u << 19);
}

TEST_CASE("a full table takes no segment, and a cleared one as many as before") {
  constexpr uint32_t capacity = 5;
  SegmentTable table(capacity, SipHash(9, 9));
  std::byte memory{};
  const SegmentTable::Segment segment{&memory, 1, read_write};
  SegmentTable::Made made;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < capacity; ++i) {
      REQUIRE(table.add(segment, TokenPolicy::plain_text, made) == Added::added);
    }
    CHECK(table.add(segment, TokenPolicy::plain_text, made) == Added::full);
    CHECK(table.size() == capacity);
    table.clear();
    CHECK(table.size() == 0);
    CHECK(table.check(made.token.id, made.token.value, reinterpret_cast<uint64_t>(&memory), 1,
                      Rights::read) == nullptr);
  }
}

TEST_CASE("an empty table refuses every access") {
  SegmentTable table(0, SipHash(0, 0));
  SegmentTable::Made made;
  std::byte memory{};
  const SegmentTable::Segment segment{&memory, 1, read_write};
  CHECK(table.add(segment, TokenPolicy::plain_text, made) == Added::full);
  CHECK(table.withdraw(Handle{0, 1}, true) == SegmentTable::none);
  CHECK(table.check(TokenId(0), TokenValue{}, 0, 1, Rights::read) == nullptr);
}

// ---- S2: tokens cannot be predicted from earlier ones

// Returns by how many standard deviations the chi-square of the counts exceeds its mean, if each
// count should be `expected`.
double surprise(const std::vector<uint32_t>& counts, double expected) {
  double sum = 0;
  for (const uint32_t count : counts) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

double serial_correlation(const std::vector<uint32_t>& drawn) {
  double mean = 0;
  for (const uint32_t one : drawn) mean += one / static_cast<double>(drawn.size());
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const double here = drawn[i] - mean;
    products += here * (drawn[(i + 1) % drawn.size()] - mean);
    squares += here * here;
  }
  return products / squares;
}

void looks_random(const std::vector<uint32_t>& drawn, unsigned bits) {
  for (unsigned shift = 0; shift + 10 <= bits; shift += 5) {
    std::vector<uint32_t> counts(1024);
    std::vector<uint32_t> steps(1024);
    for (size_t i = 0; i < drawn.size(); ++i) {
      ++counts[drawn[i] >> shift & 1023];
      ++steps[(drawn[i] - drawn[(i + 1) % drawn.size()]) >> shift & 1023];
    }
    const double expected = static_cast<double>(drawn.size()) / 1024;
    INFO("bits from " << shift);
    CHECK(surprise(counts, expected) < 4);
    CHECK(surprise(steps, expected) < 4);
  }
  CHECK(std::abs(serial_correlation(drawn)) < 4 / std::sqrt(drawn.size()));
}

TEST_CASE("TokenIDs and TokenValues look random", "[numbers]") {
  SegmentTable table(4, SipHash(0x1234, 0x5678));
  std::byte memory{};
  const SegmentTable::Segment segment{&memory, 1, read_write};
  std::vector<uint32_t> ids;
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < 500'000; ++i) {
    SegmentTable::Made made;
    REQUIRE(table.add(segment, TokenPolicy::plain_text, made) == Added::added);
    ids.push_back(number(made.token.id));
    values.push_back(number(made.token.value));
    table.release(table.withdraw(made.segment, false));
  }
  looks_random(ids, id_bits);
  looks_random(values, 32);
  // The values that a single TokenID gets must look random, too.
  SegmentTable::Made made;
  REQUIRE(table.add(segment, TokenPolicy::plain_text, made) == Added::added);
  values.clear();
  for (uint32_t i = 0; i < 200'000; ++i) {
    REQUIRE(table.rotate(made.segment));
    values.push_back(number(table.token(made.segment).value));
    table.retire(made.segment);
  }
  looks_random(values, 32);
  std::ranges::sort(values);
  CHECK(std::ranges::adjacent_find(values) == values.end());
}

TEST_CASE("a former token is distinguished from a value that never was one") {
  OneSegment one;
  std::vector<TokenValue> were{one.token};
  for (int i = 0; i < 20; ++i) {
    REQUIRE(one.table.rotate(one.made.segment));
    REQUIRE(one.table.retire(one.made.segment));
    were.push_back(one.table.token(one.made.segment).value);
  }
  for (const TokenValue value : were) {
    CHECK(one.table.once(one.id, value));
    CHECK(one.opens(value) == (value == were.back()));
    for (unsigned bit = 0; bit < 32; ++bit) {
      CHECK_FALSE(one.table.once(one.id, TokenValue(number(value) ^ 1u << bit)));
    }
    CHECK_FALSE(one.table.once(TokenId(number(one.id) ^ 1), value));
  }
  one.remove();
  CHECK(one.table.once(one.id, were.back()));
}

// Each engine of a device has a table; the first one draws the names.
TEST_CASE("tables with one key that make the same changes have the same tokens") {
  std::array<std::byte, 4096> memory{};
  const SegmentTable::Segment segment{.base = memory.data(), .bytes = 1024, .rights = read_write};
  SegmentTable first{4, SipHash(1, 2)};
  SegmentTable copy{4, SipHash(1, 2)};
  SegmentTable::Made made;
  SegmentTable::Made copied;
  const uint64_t base = reinterpret_cast<uint64_t>(memory.data());
  const auto opens = [&](TokenValue value) {
    const TokenId id = made.token.id;
    return copy.check(id, value, base, 1, Rights::read) != nullptr &&
           first.check(id, value, base, 1, Rights::read) != nullptr;
  };
  for (int round = 0; round < 3; ++round) {
    for (const TokenPolicy policy : {TokenPolicy::plain_text, TokenPolicy::none}) {
      REQUIRE(first.add(segment, policy, made) == Added::added);
      REQUIRE(copy.add(segment, policy, copied, &made.token) == Added::added);
      CHECK(copied.token.id == made.token.id);
      CHECK(copied.token.checked == made.token.checked);
      CHECK(opens(made.token.value));
      const bool rotated = policy == TokenPolicy::plain_text;
      CHECK(first.rotate(made.segment) == rotated);
      CHECK(copy.rotate(copied.segment) == rotated);
      const TokenValue newer = first.token(made.segment).value;
      CHECK(copy.token(copied.segment).value == newer);
      CHECK(opens(newer));
      if (rotated) CHECK(copy.once(made.token.id, made.token.value));
      copy.release(copy.withdraw(copied.segment, false));
      first.release(first.withdraw(made.segment, false));
      CHECK_FALSE(opens(newer));
    }
  }
  // It is full when its own segments are as many as it has room for.
  std::array<SegmentTable::Made, 4> all;
  for (SegmentTable::Made& one : all) {
    REQUIRE(first.add(segment, TokenPolicy::plain_text, made) == Added::added);
    REQUIRE(copy.add(segment, TokenPolicy::plain_text, one, &made.token) == Added::added);
  }
  CHECK(first.add(segment, TokenPolicy::plain_text, made) == Added::full);
  CHECK(copy.add(segment, TokenPolicy::plain_text, copied, &made.token) == Added::full);
}

TEST_CASE("a chosen token opens its TokenID alone, and is not rotated") {
  SegmentTable first(4, SipHash(1, 2));
  SegmentTable copy(4, SipHash(1, 2));
  const TokenValue chosen{0xacfe};
  const SegmentTable::TokenPlan plan(TokenPolicy::plain_text, chosen);
  std::vector<std::byte> memory(64);
  const SegmentTable::Segment segment{memory.data(), memory.size(), Rights::read};
  const auto opens = [&](const SegmentTable& table, const SegmentTable::Made& made,
                         TokenValue value) {
    return table.check(made.token.id, value, segment.address, 8, Rights::read) != nullptr;
  };
  for (int round = 0; round < 3; ++round) {
    SegmentTable::Made made;
    SegmentTable::Made copied;
    REQUIRE(first.add(segment, plan, made) == Added::added);
    REQUIRE(copy.add(segment, plan, copied, &made.token) == Added::added);
    CHECK(made.token.value == chosen);
    CHECK(made.token.chosen);
    CHECK(made.token.checked);
    for (const SegmentTable* table : {&first, &copy}) {
      CHECK(opens(*table, made, chosen));
      CHECK_FALSE(opens(*table, made, TokenValue(number(chosen) ^ 1)));
    }
    CHECK_FALSE(first.rotate(made.segment));
    copy.release(copy.withdraw(copied.segment, false));
    first.release(first.withdraw(made.segment, false));
    CHECK_FALSE(opens(first, made, chosen));
  }
}

TEST_CASE("another incarnation has other TokenIDs and other TokenValues") {
  const memseg::TokenMint one(SipHash(1, 2));
  const memseg::TokenMint other(SipHash(1, 3));
  uint32_t same = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    same += one.id(i) == other.id(i);
    same += one.value(TokenId(i), 0) == other.value(TokenId(i), 0);
    same += one.value(TokenId(5), i) == one.value(TokenId(6), i);
  }
  CHECK(same < 5);
}

}  // namespace
}  // namespace urma::test
