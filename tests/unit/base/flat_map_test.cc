// SPDX-License-Identifier: Apache-2.0
#include "base/flat_map.h"

#include <map>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

// All keys hash to the last slots of the table, so that every chain wraps around its end.
struct Clumped {
  uint64_t operator()(uint64_t key) const { return ~uint64_t{0} - key % 3; }
};
// Keys that hash to long runs of neighbouring slots, so that each removal moves many entries.
struct InOrder {
  uint64_t operator()(uint64_t key) const { return key / 2; }
};

template <class Hash>
void churn(uint32_t capacity, uint64_t keys, int steps) {
  FlatMap<uint64_t, Hash> map(capacity);
  std::map<uint64_t, uint32_t> model;
  Prng prng(capacity + keys);
  for (int step = 0; step < steps; ++step) {
    const uint64_t key = prng.below(keys);
    const auto value = static_cast<uint32_t>(prng.next() >> 33);
    const auto at = model.find(key);
    if (at != model.end()) {
      REQUIRE(map.find(key) == at->second);
      if (prng.chance(0.6)) {
        REQUIRE(map.erase(key));
        model.erase(at);
      }
    } else {
      REQUIRE(map.find(key) == map.none);
      REQUIRE_FALSE(map.erase(key));
      if (model.size() < capacity) {
        map.insert(key, value);
        model[key] = value;
      }
    }
    REQUIRE(map.size() == model.size());
    if (step % 16 != 0) continue;
    for (uint64_t each = 0; each < keys; ++each) {
      const auto expected = model.find(each);
      REQUIRE(map.find(each) == (expected == model.end() ? map.none : expected->second));
    }
  }
}

TEST_CASE("a flat map has the same content as std::map after any inserts and removals") {
  churn<MixBits>(1, 4, 500);
  churn<MixBits>(30, 60, 20'000);
  churn<MixBits>(200, 300, 20'000);
}

TEST_CASE("a flat map whose keys collide and wrap has the right content") {
  churn<Clumped>(7, 20, 20'000);
  churn<Clumped>(40, 60, 20'000);
  churn<InOrder>(31, 62, 20'000);
}

TEST_CASE("a flat map has room for all of its capacity") {
  for (uint32_t capacity = 0; capacity < 70; ++capacity) {
    FlatMap<uint64_t> map(capacity);
    for (uint32_t i = 0; i < capacity; ++i) map.insert(i, i + 1);
    REQUIRE(map.size() == capacity);
    for (uint32_t i = 0; i < capacity; ++i) REQUIRE(map.find(i) == i + 1);
    REQUIRE(map.find(capacity) == map.none);
  }
}

TEST_CASE("each single bit of a key changes about half of the bits of its hash") {
  Prng prng(3);
  for (unsigned bit = 0; bit < 64; ++bit) {
    uint64_t changed = 0;
    for (int i = 0; i < 200; ++i) {
      const uint64_t key = prng.next();
      const uint64_t difference = mix_bits(key) ^ mix_bits(key ^ uint64_t{1} << bit);
      REQUIRE(difference != 0);
      changed += static_cast<uint64_t>(std::popcount(difference));
    }
    INFO("bit " << bit);
    CHECK(changed > 200 * 26);
    CHECK(changed < 200 * 38);
  }
}

}  // namespace
}  // namespace urma::test
