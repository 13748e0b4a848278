// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/wakes.h"

#include <set>
#include <utility>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::drivers::sim {
namespace {

TEST_CASE("engines wake in the order of time and index, whatever times are set and removed") {
  constexpr uint32_t engines = 20;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    Wakes wakes;
    std::set<std::pair<Time, uint32_t>> model;
    bool same = true;
    for (int step = 0; step < 2000; ++step) {
      const auto engine = static_cast<uint32_t>(prng.below(engines));
      const Time at =
          prng.chance(0.2) ? never : Time(Duration(static_cast<int64_t>(prng.below(50))));
      std::erase_if(model, [&](const auto& wake) { return wake.second == engine; });
      if (at != never) model.emplace(at, engine);
      wakes.set(engine, at);
      same = same && wakes.next() == (model.empty() ? never : model.begin()->first);
      same = same && (model.empty() || wakes.first() == model.begin()->second);
    }
    CHECK(same);
  }
}

}  // namespace
}  // namespace urma::drivers::sim
