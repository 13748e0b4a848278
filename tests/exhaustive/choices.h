// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace urma::test {

// Turns a loop with choices into an enumeration of all of them:
//
//   for (Choices choose; choose.next_round();) { ... choose(3) ... choose.boolean() ... }
//
// visits every sequence of choices that the body can make, once.
class Choices {
 public:
  // Returns true if there is another round; false if all have been visited.
  bool next_round() {
    if (!started_) return started_ = true;
    while (!made_.empty() && made_.back().value + 1 == made_.back().limit) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().value;
    at_ = 0;
    return true;
  }
  // Returns 0 to limit - 1; limit > 0.
  uint32_t operator()(uint32_t limit) {
    if (at_ == made_.size()) made_.push_back({0, limit});
    return made_[at_++].value;
  }
  bool boolean() { return (*this)(2) == 1; }

 private:
  struct Choice {
    uint32_t value;
    uint32_t limit;
  };
  std::vector<Choice> made_;
  size_t at_ = 0;
  bool started_ = false;
};

}  // namespace urma::test
