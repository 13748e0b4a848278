// SPDX-License-Identifier: Apache-2.0
#include "umdk/place.h"

namespace urma::umdk {
namespace {

// An address in a window: a prefix, the window's number of 64 bits, and the slot.
constexpr size_t slot_at = sizeof window_prefix + 8;

}  // namespace

urma_eid_t to_eid(const Eid& address) {
  urma_eid_t eid{};
  std::memcpy(eid.raw, address.bytes.data(), sizeof eid.raw);
  return eid;
}

Eid to_address(const urma_eid_t& eid) {
  Eid address;
  std::memcpy(address.bytes.data(), eid.raw, sizeof eid.raw);
  return address;
}

Place place_of(const Endpoint& endpoint) {
  if (!in_window(endpoint.address)) return {to_eid(endpoint.address), endpoint.port};
  Eid window = endpoint.address;
  uint32_t slot = 0;
  for (size_t i = slot_at; i < window.bytes.size(); ++i) {
    slot = slot << 8 | static_cast<uint32_t>(window.bytes[i]);
    window.bytes[i] = std::byte{0};
  }
  return {to_eid(window), slot + 1};
}

Endpoint endpoint_of(const Place& place) {
  Endpoint endpoint;
  endpoint.address = to_address(place.eid);
  endpoint.port = ub_port;  // of all slots
  if (!in_window(endpoint.address)) {
    endpoint.port = static_cast<uint16_t>(place.uasid);
    return endpoint;
  }
  uint32_t slot = place.uasid - 1;
  for (size_t i = endpoint.address.bytes.size(); i-- > slot_at; slot >>= 8) {
    endpoint.address.bytes[i] = static_cast<std::byte>(slot);
  }
  return endpoint;
}

}  // namespace urma::umdk
