#pragma once

#include <chrono>
#include <vector>

#include "urma/urma.hpp"

namespace urma::test {

// A work ends within seconds unless something is wrong, but on a machine that runs other things the
// engine may have to wait for a processor. Nothing is measured by this limit: what takes this long
// has stopped.
inline constexpr Duration patience = std::chrono::seconds(60);

// So many completions, or as many as came before `limit` passed without one.
inline std::vector<Completion> collect(Jetty& jetty, size_t count, Duration limit = patience) {
  std::vector<Completion> out;
  while (out.size() < count) {
    const auto completions = jetty.wait(limit);
    if (completions.empty()) break;
    out.insert(out.end(), completions.begin(), completions.end());
  }
  return out;
}

}  // namespace urma::test
