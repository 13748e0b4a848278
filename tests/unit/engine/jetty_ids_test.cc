// SPDX-License-Identifier: Apache-2.0
#include "engine/jetty_ids.h"

#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::JettyIds;

TEST_CASE("each id above the well-known ones is given out once, then there is none", "[numbers]") {
  SeededEntropy entropy(1);
  JettyIds ids(1, entropy);
  std::vector<bool> seen(id_limit);
  for (uint32_t i = number(first_dynamic_jetty); i < id_limit; ++i) {
    const auto id = ids.take();
    if (!id || number(*id) < number(first_dynamic_jetty) || seen[number(*id)]) {
      FAIL("id number " << i << " is missing, well-known, or was given out before");
    }
    seen[number(*id)] = true;
  }
  CHECK_FALSE(ids.take());
  ids.give_back(JettyId(5000));
  CHECK(ids.take() == JettyId(5000));
  CHECK_FALSE(ids.take());
}

TEST_CASE("the engines of a device give out different ids", "[numbers]") {
  constexpr uint32_t engines = 3;
  std::vector<bool> seen(id_limit);
  uint32_t count = 0;
  for (uint32_t engine = 0; engine < engines; ++engine) {
    SeededEntropy entropy(engine);
    JettyIds ids(1, entropy, {.engine = engine, .engines = engines});
    while (const auto id = ids.take()) {
      if (seen[number(*id)]) FAIL("id " << number(*id) << " was given out before");
      seen[number(*id)] = true;
      ++count;
    }
  }
  CHECK(count == id_limit - number(first_dynamic_jetty));
}

TEST_CASE("the ids of two devices are drawn in different orders") {
  SeededEntropy one(1);
  SeededEntropy other(2);
  JettyIds first(8, one);
  JettyIds second(8, other);
  int equal = 0;
  for (int i = 0; i < 8; ++i) equal += first.take() == second.take() ? 1 : 0;
  CHECK(equal == 0);
}

// The model: the ids in use, and those given back, the latest one last.
TEST_CASE("an id is in use once at a time, and the latest one given back is used first") {
  constexpr uint32_t most = 30;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    SeededEntropy entropy(seed);
    JettyIds ids(most, entropy);
    std::vector<JettyId> used;
    std::vector<JettyId> given_back;
    std::set<JettyId> ever;
    for (int step = 0; step < 2000; ++step) {
      if (used.size() < most && prng.chance(0.5)) {
        const JettyId id = ids.take().value();
        REQUIRE(std::find(used.begin(), used.end(), id) == used.end());
        if (!given_back.empty()) {
          REQUIRE(id == given_back.back());
          given_back.pop_back();
        }
        used.push_back(id);
        ever.insert(id);
      } else if (!used.empty()) {
        std::swap(used[prng.below(used.size())], used.back());
        ids.give_back(used.back());
        given_back.push_back(used.back());
        used.pop_back();
      }
    }
    CHECK(ever.size() <= most);
  }
}

}  // namespace
}  // namespace urma::test
