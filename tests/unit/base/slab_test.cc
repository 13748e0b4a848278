// SPDX-License-Identifier: Apache-2.0
#include "base/slab.h"

#include <map>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

struct Thing {
  Thing(uint64_t name_, int& alive_) : name(name_), alive(alive_) { ++alive; }
  ~Thing() { --alive; }
  uint64_t name;
  int& alive;
};

TEST_CASE("a slab finds living objects, and never destroyed ones, however its slots are reused") {
  constexpr uint32_t capacity = 20;
  int alive = 0;
  {
    Slab<Thing> slab(capacity);
    Prng prng(1);
    std::map<uint64_t, Handle> living;
    std::vector<Handle> gone;
    std::vector<uint32_t> free_slots;
    for (uint64_t name = 0; name < 20'000; ++name) {
      if (prng.chance(0.52)) {
        const bool full = living.size() == capacity;
        REQUIRE(slab.full() == full);
        const uint32_t index = full ? 0 : slab.next_index();
        Thing* thing = slab.create(name, alive);
        REQUIRE((thing == nullptr) == full);
        if (thing == nullptr) continue;
        REQUIRE(slab.index_of(thing) == index);
        if (!free_slots.empty()) {
          REQUIRE(index == free_slots.back());
          free_slots.pop_back();
        }
        living[name] = slab.handle_of(thing);
      } else if (!living.empty()) {
        const auto victim =
            std::next(living.begin(), static_cast<ptrdiff_t>(prng.below(living.size())));
        slab.destroy(slab.find(victim->second));
        free_slots.push_back(victim->second.index);
        gone.push_back(victim->second);
        living.erase(victim);
      }
      REQUIRE(alive == static_cast<int>(living.size()));
      REQUIRE(slab.size() == living.size());
      for (const auto& [expected, handle] : living) {
        REQUIRE(slab.find(handle)->name == expected);
        REQUIRE(slab.live(handle.index));
      }
      for (size_t i = gone.size(); i > 0 && i + 30 > gone.size(); --i) {
        REQUIRE(slab.find(gone[i - 1]) == nullptr);
      }
      std::set<uint64_t> seen;
      slab.for_each([&](const Thing& thing) { REQUIRE(seen.insert(thing.name).second); });
      REQUIRE(seen.size() == living.size());
    }
    for (const Handle& handle : gone) REQUIRE(slab.find(handle) == nullptr);
    REQUIRE(alive > 0);
  }
  CHECK(alive == 0);
}

TEST_CASE("a zero handle, one of an unused slot and one beyond the slab find nothing") {
  int alive = 0;
  Slab<Thing> slab(4);
  CHECK(slab.find(Handle{0, 0}) == nullptr);
  Thing* thing = slab.create(1u, alive);
  slab.destroy(thing);
  CHECK(slab.find(Handle{0, 0}) == nullptr);
  CHECK(slab.find(Handle{0, 2}) == nullptr);
  CHECK(slab.find(Handle{}) == nullptr);
  CHECK(slab.find(Handle{4, 1}) == nullptr);
  CHECK_FALSE(Handle{});
}

TEST_CASE("objects of a slab have the alignment of their type") {
  struct alignas(64) Line {
    uint8_t byte = 0;
  };
  Slab<Line> lines(3);
  for (int i = 0; i < 3; ++i) {
    CHECK(reinterpret_cast<uintptr_t>(lines.create()) % 64 == 0);
  }
}

}  // namespace
}  // namespace urma::test
