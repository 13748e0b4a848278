// SPDX-License-Identifier: Apache-2.0
#include "base/dirty_set.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

std::vector<uint32_t> take_all(DirtySet& set) {
  std::vector<uint32_t> taken;
  set.take([&](uint32_t member) { taken.push_back(member); });
  std::sort(taken.begin(), taken.end());
  return taken;
}

// Tests members at the edges of the words of both levels: a word has 64 members, a summary word
// 4096.
TEST_CASE("each member can be marked and is taken once, alone and in order") {
  constexpr uint32_t members = 3 * 4096 + 65;
  DirtySet set(members);
  CHECK_FALSE(set.any());
  const std::vector<uint32_t> edges{0,    1,    62,   63,   64,   127,  128,         4094,
                                    4095, 4096, 4097, 8191, 8192, 8193, members - 2, members - 1};
  for (const uint32_t member : edges) {
    INFO("member " << member);
    set.mark(member);
    set.mark(member);
    CHECK(set.any());
    CHECK(take_all(set) == std::vector{member});
    CHECK_FALSE(set.any());
    CHECK(take_all(set).empty());
  }
  for (auto at = edges.rbegin(); at != edges.rend(); ++at) set.mark(*at);
  CHECK(take_all(set) == edges);
}

TEST_CASE("a member that is taken repeatedly is not confused with another one") {
  DirtySet set(1000);
  for (const uint32_t usual : {0u, 999u, 500u, 0u}) {
    for (int again = 0; again < 3; ++again) {
      set.mark(usual);
      CHECK(take_all(set) == std::vector{usual});
    }
    set.mark(1);
    set.mark(usual);
    CHECK(take_all(set) == std::vector{std::min(1u, usual), std::max(1u, usual)});
    CHECK_FALSE(set.any());
  }
}

TEST_CASE("marks and takes in any order give the same result as std::set") {
  constexpr uint32_t members = 10'000;
  DirtySet set(members);
  std::set<uint32_t> model;
  Prng prng(1);
  for (int round = 0; round < 3000; ++round) {
    for (uint64_t i = prng.below(40); i > 0; --i) {
      const auto member = static_cast<uint32_t>(prng.below(members));
      set.mark(member);
      model.insert(member);
    }
    REQUIRE(set.any() == !model.empty());
    if (prng.chance(0.5)) continue;
    REQUIRE(take_all(set) == std::vector(model.begin(), model.end()));
    model.clear();
  }
}

TEST_CASE("a member marked while others are taken is taken then or next time, never lost") {
  DirtySet set(5000);
  std::multiset<uint32_t> taken;
  set.mark(100);
  const auto mark_others = [&](uint32_t member) {
    taken.insert(member);
    if (taken.size() > 1) return;
    for (const uint32_t other : {3u, 99u, 101u, 4900u}) set.mark(other);
  };
  set.take(mark_others);
  set.take(mark_others);
  CHECK(taken == std::multiset<uint32_t>{3, 99, 100, 101, 4900});
  CHECK_FALSE(set.any());
}

}  // namespace
}  // namespace urma::test
