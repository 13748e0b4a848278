// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "tests/catch.h"
#include "urma/urma.hpp"

namespace urma::test {

// A work ends within seconds unless something is wrong, but on a busy machine the engine may have
// to wait for a processor. This limit is not a measurement: a work that takes so long will not end.
inline constexpr Duration patience = std::chrono::seconds(60);

// Returns this many completions, or fewer once `limit` has passed without a further one.
inline std::vector<Completion> collect(Jetty& jetty, size_t count, Duration limit = patience) {
  std::vector<Completion> out;
  while (out.size() < count) {
    const auto completions = jetty.wait(limit);
    if (completions.empty()) break;
    out.insert(out.end(), completions.begin(), completions.end());
  }
  return out;
}

// Posts the work and returns its completion. No other completion may arrive meanwhile.
inline Completion run_one(Jetty& jetty, const Work& work) {
  REQUIRE(jetty.post(work) == 1);
  const auto completions = collect(jetty, 1);
  REQUIRE(completions.size() == 1);
  return completions[0];
}

}  // namespace urma::test
