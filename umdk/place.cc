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

Place place_of(const urma_jetty_id_t& id) {
  if (id.uasid != 0) return {id.eid, id.uasid};
  const bool window = in_window(to_address(id.eid));
  const uint32_t index = (id.id - first_telling) / numbers_of_each;
  if (id.id >= first_telling && index < index_limit) {
    return {id.eid, index + (window ? 1u : uint32_t{ub_port})};
  }
  return {id.eid, window ? named_place | id.id : uint32_t{ub_port}};
}

std::optional<uint32_t> index_of(const Place& place) {
  const uint32_t index = place.uasid - (in_window(to_address(place.eid)) ? 1u : uint32_t{ub_port});
  return index < index_limit ? std::optional(index) : std::nullopt;
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
