// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/include/ub/umdk/urma/urma_types.h"
#include "urma/core/endpoint.h"

namespace urma::umdk {

// Where an object is, as the C API says it: an EID, which all processes at an address share, and a
// uasid of 24 bits, which is a UDP port, or the slot of a window plus 1. The uasid 0 names no
// process.
struct Place {
  urma_eid_t eid{};
  uint32_t uasid = 0;

  friend bool operator==(const Place& a, const Place& b) {
    return std::memcmp(&a.eid, &b.eid, sizeof a.eid) == 0 && a.uasid == b.uasid;
  }
};

// These two are inverse to each other, for addresses of devices.
Place place_of(const Endpoint& endpoint);
Endpoint endpoint_of(const Place& place);

inline Place place_of(const urma_jetty_id_t& id) { return {id.eid, id.uasid}; }

// Returns the EID of an address.
urma_eid_t to_eid(const Eid& address);
Eid to_address(const urma_eid_t& eid);

}  // namespace urma::umdk
