// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/path.h"

namespace urma {

// The endpoints of a device, one for each of its paths. A path keeps its index: when one is
// removed, its entry becomes empty (`Endpoint{}`), and the later ones stay where they are.
struct PathList {
  uint8_t count = 0;    // entries, empty ones included; the last one is never empty
  uint32_t number = 0;  // 24 bits, wraps: grows with each change of the device's list
  std::array<Endpoint, most_paths> endpoints{};

  static constexpr uint32_t number_mask = 0xffffff;
  bool there(unsigned place) const { return !(endpoints[place] == Endpoint{}); }
  // Returns the index of the first entry that is not empty; `count` if all are.
  uint8_t first() const {
    uint8_t place = 0;
    while (place < count && !there(place)) ++place;
    return place;
  }
  // Endpoint{} removes the entry.
  void set(unsigned place, const Endpoint& endpoint) {
    endpoints[place] = endpoint;
    count = most_paths;
    while (count > 0 && !there(count - 1u)) --count;
  }
  bool leads_to(const Endpoint& to) const {
    return std::find(endpoints.begin(), endpoints.end(), to) != endpoints.end();
  }
  bool newer_than(uint32_t other) const {
    return ((number - other) & number_mask) - 1 < number_mask / 2;
  }
  friend bool operator==(const PathList&, const PathList&) = default;
};

}  // namespace urma
