// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/capi/devices.h"
#include "umdk/place.h"
#include "urma/observe.hpp"

namespace urma::apps::admin {

using umdk::Place;
// Returns the place of an address, as pages show it. It is empty if that is not an address.
Place place_of(const std::string& endpoint);

// An opened device of a running process, as its page shows it.
struct Opened {
  ObservedDevice page;
  Place at;

  // Returns the process for people: "4711 (urma_perf)".
  std::string process() const;
  // Returns a metric, or 0 if its version does not have it.
  uint64_t metric(std::string_view name) const;
};

// All pages that this process may read.
struct Pages {
  std::vector<Opened> opened;
  std::vector<std::string> skipped;
  uint64_t unread = 0;
};
// Throws a Failure if the pages cannot be read.
Pages read_pages();

// Returns those of the pages that are at an EID of this device.
std::vector<const Opened*> opened_at(const capi::ListedDevice& device, const Pages& pages);

// Returns the TokenID as the C API numbers it: with eight more bits.
inline uint64_t token_id_of(const ObservedSegment& segment) {
  return uint64_t{segment.token_id} << 8;
}

}  // namespace urma::apps::admin
