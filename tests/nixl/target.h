// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/nixl/agent.h"
#include "tests/processes/child.h"

namespace urma::test {

// Returns the parts of a line between its tabs.
inline std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == '\t') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Lets an agent know the one of a target's process (target.cc). Returns false if it did not start.
inline bool load_target(Agent& agent, const Child& target) {
  const std::vector<std::string> parts = parts_of(target.said());
  if (parts.size() != 4) return false;
  nixlBlobDesc published(std::stoull(parts[0]), std::stoull(parts[1]), 0);
  published.metaInfo = parts[3];
  return agent.load("target", parts[2], published) == NIXL_SUCCESS;
}

}  // namespace urma::test
