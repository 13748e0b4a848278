#pragma once

#include <chrono>
#include <vector>

#include "urma/urma.hpp"

namespace urma::test {

// So many completions, or as many as came before `limit` passed without one.
inline std::vector<Completion> collect(Jetty& jetty, size_t count,
                                       Duration limit = std::chrono::seconds(5)) {
  std::vector<Completion> out;
  while (out.size() < count) {
    const auto completions = jetty.wait(limit);
    if (completions.empty()) break;
    out.insert(out.end(), completions.begin(), completions.end());
  }
  return out;
}

}  // namespace urma::test
