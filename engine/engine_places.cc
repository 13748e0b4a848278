// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_places.h"

#include "base/bits.h"
#include "base/flat_map.h"

namespace urma::engine {

// In a window each slot is an EID. Elsewhere the EIDs of further engines follow from the first one,
// so that a descriptor need not list them, and that a device which restarts has the same.
Eid eid_of_engine(const Eid& first, uint32_t engine, const Endpoint& place) {
  if (engine == 0) return first;
  if (in_window(place.address)) return place.address;
  const uint64_t high = load_be<8>(first.bytes.data());
  const uint64_t low = load_be<8>(first.bytes.data() + 8);
  Eid eid;
  eid.bytes[0] = std::byte{0xfd};
  store_be<8>(eid.bytes.data() + 1, mix_bits(mix_bits(high) ^ low));
  eid.bytes[9] = static_cast<std::byte>(engine);
  eid.bytes[15] = std::byte{1};
  return eid;
}

std::vector<Endpoint> places_of(const Descriptor& device) {
  std::vector<Endpoint> places{device.at};
  places.insert(places.end(), device.engines.begin(), device.engines.end());
  return places;
}

Endpoint place_of_jetty(const Descriptor& device) {
  const std::vector<Endpoint> places = places_of(device);
  return places[engine_of(device.jetty->id, static_cast<uint32_t>(places.size()))];
}

}  // namespace urma::engine
