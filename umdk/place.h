// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "umdk/include/ub/umdk/urma/urma_types.h"
#include "urma/core/endpoint.h"

namespace urma::umdk {

// Jetties, JFRs and groups have numbers of 20 bits. In UMDK a number is unique for an EID, so
// programs may pass on these two alone. Here several processes share an EID. So each process has an
// index, its slot of the window or its UDP port minus ub_port, and automatic numbers tell the
// index: each index has `numbers_of_each` of them.
inline constexpr uint32_t first_automatic = 1 << 16;  // the program may choose smaller ones
inline constexpr uint32_t first_telling = 1 << 18;    // smaller ones tell no process
inline constexpr uint32_t numbers_of_each = 3000;
inline constexpr uint32_t index_limit = (id_limit - first_telling) / numbers_of_each;

// Where an object is, as the C API says it: an EID, which all processes at an address share, and a
// uasid of 24 bits, which is a UDP port, or the slot of a window plus 1.
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

// Returns the place of a Jetty, JFR or group. The uasid may be 0: then the number tells the
// process. One that tells none is at ub_port or, in a window, has a name: the uasid of the place is
// then `named_place` plus the number.
Place place_of(const urma_jetty_id_t& id);
inline constexpr uint32_t named_place = 1u << 31;

// Returns the index of the process at a place, if its automatic numbers tell it.
std::optional<uint32_t> index_of(const Place& place);

// Returns the EID of an address.
urma_eid_t to_eid(const Eid& address);
Eid to_address(const urma_eid_t& eid);

}  // namespace urma::umdk
