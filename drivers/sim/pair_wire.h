// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "urma/core/time.h"

namespace urma::drivers::sim {

class RemoteEnds;

// The ends of pairs of a network, and a calendar of what happens to them. Entries of the calendar
// name ends by their numbers, because an end may vanish before. The network owns it.
class PairWire {
 public:
  uint64_t add(RemoteEnds& owner) {
    owners_.emplace(next_number_, &owner);
    return next_number_++;
  }
  void remove(uint64_t end) { owners_.erase(end); }
  // Returns the device that has this end, or null.
  RemoteEnds* owner_of(uint64_t end) const {
    const auto found = owners_.find(end);
    return found != owners_.end() ? found->second : nullptr;
  }

  void at(Time time, std::function<void()> what) {
    calendar_.emplace(std::pair(time, order_++), std::move(what));
  }
  Time next() const { return calendar_.empty() ? never : calendar_.begin()->first.first; }
  void run(Time now) {
    while (next() <= now) {
      const auto first = calendar_.extract(calendar_.begin());
      first.mapped()();
    }
  }

 private:
  std::unordered_map<uint64_t, RemoteEnds*> owners_;  // by end
  uint64_t next_number_ = 1;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> calendar_;
  uint64_t order_ = 0;
};

}  // namespace urma::drivers::sim
