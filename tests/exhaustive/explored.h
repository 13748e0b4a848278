// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace urma::test {

// The states of a machine that have been reached, each once, and those from which no step has been
// taken yet. States are compared by their bytes.
template <class State>
class Explored {
  static_assert(std::has_unique_object_representations_v<State>);

 public:
  void visit(const State& state) {
    std::string bytes(sizeof state, '\0');
    std::memcpy(bytes.data(), &state, sizeof state);
    if (known_.insert(std::move(bytes)).second) open_.push_back(state);
  }
  bool done() const { return open_.empty(); }
  // Takes a state out, from which the caller then takes all steps. There must be one.
  State take() {
    const State state = open_.back();
    open_.pop_back();
    return state;
  }
  size_t states() const { return known_.size(); }

 private:
  std::unordered_set<std::string> known_;
  std::vector<State> open_;
};

}  // namespace urma::test
