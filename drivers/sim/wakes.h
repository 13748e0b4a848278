// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "urma/core/time.h"

namespace urma::drivers::sim {

// When each engine of a network runs next: a heap, so that an event costs little in a network of
// many engines. Engines with the same time run in the order of their indices. It knows engines by
// their indices only.
class Wakes {
 public:
  // Sets the time of an engine. `never` removes it.
  void set(uint32_t engine, Time at) {
    if (engine >= places_.size()) places_.resize(engine + 1, 0);
    if (places_[engine] == 0) {
      if (at == never) return;
      heap_.push_back({at, engine});
      places_[engine] = static_cast<uint32_t>(heap_.size());
      return rise(places_[engine]);
    }
    const uint32_t place = places_[engine];
    if (at == never) return remove(place);
    heap_[place - 1].at = at;
    rise(place);
    sink(places_[engine]);
  }
  // Returns the earliest time; `never` if no engine has one.
  Time next() const { return heap_.empty() ? never : heap_.front().at; }
  // Returns the engine with this time. There must be one.
  uint32_t first() const { return heap_.front().engine; }

 private:
  struct Wake {
    Time at;
    uint32_t engine;

    bool before(const Wake& other) const {
      return at != other.at ? at < other.at : engine < other.engine;
    }
  };

  // Places in the heap are counted from 1, so that the parent of a place is half of it.
  void swap(uint32_t a, uint32_t b) {
    std::swap(heap_[a - 1], heap_[b - 1]);
    places_[heap_[a - 1].engine] = a;
    places_[heap_[b - 1].engine] = b;
  }
  void rise(uint32_t place) {
    for (; place > 1 && heap_[place - 1].before(heap_[place / 2 - 1]); place /= 2) {
      swap(place, place / 2);
    }
  }
  void sink(uint32_t place) {
    while (2 * place <= heap_.size()) {
      uint32_t child = 2 * place;
      if (child < heap_.size() && heap_[child].before(heap_[child - 1])) ++child;
      if (!heap_[child - 1].before(heap_[place - 1])) return;
      swap(place, child);
      place = child;
    }
  }
  void remove(uint32_t place) {
    const auto last = static_cast<uint32_t>(heap_.size());
    const uint32_t engine = heap_[place - 1].engine;
    if (place != last) swap(place, last);
    heap_.pop_back();
    places_[engine] = 0;
    if (place == last) return;
    const uint32_t moved = heap_[place - 1].engine;
    rise(place);
    sink(places_[moved]);
  }

  std::vector<Wake> heap_;
  std::vector<uint32_t> places_;  // of each engine; 0 if it is not in the heap
};

}  // namespace urma::drivers::sim
