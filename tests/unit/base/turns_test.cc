// SPDX-License-Identifier: Apache-2.0
#include "base/turns.h"

#include <algorithm>
#include <deque>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("members take turns in the order in which they began to wait, each once") {
  for (const uint32_t members : {1u, 2u, 3u, 64u, 65u}) {
    Prng prng(members);
    Turns turns(members);
    std::deque<uint32_t> model;
    for (int step = 0; step < 20'000; ++step) {
      if (prng.chance(0.5)) {
        const auto member = static_cast<uint32_t>(prng.below(members));
        turns.add(member);
        if (std::find(model.begin(), model.end(), member) == model.end()) model.push_back(member);
      } else if (!model.empty()) {
        REQUIRE(turns.take() == model.front());
        model.pop_front();
      }
      REQUIRE(turns.size() == model.size());
    }
  }
}

}  // namespace
}  // namespace urma::test
