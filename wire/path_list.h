#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/path.h"

namespace urma::transport {

// Where a device is reached over its paths. A place keeps its number: where one was taken away, and
// others follow, nothing is.
struct PathList {
  uint8_t count = 0;    // places, those with nothing included
  uint32_t number = 0;  // of this list, of 24 bits: grows with each that its device has
  std::array<Endpoint, most_paths> endpoints{};

  static constexpr uint32_t number_mask = 0xffffff;
  bool there(unsigned place) const { return !(endpoints[place] == Endpoint{}); }
  // The first one that is there; `count` if there is none.
  uint8_t first() const {
    uint8_t place = 0;
    while (place < count && !there(place)) ++place;
    return place;
  }
  // Not there: Endpoint{}.
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

}  // namespace urma::transport
