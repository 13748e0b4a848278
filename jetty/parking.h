// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/region.h"
#include "transport/upper.h"

namespace urma::jetty {

// The packets of one slice that arrived before its turn, oldest first.
struct Kept {
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t first = none;
  uint32_t last = none;
  uint32_t count = 0;
  uint32_t room = 0;      // packets that may still arrive, for which room is reserved
  uint32_t reserved = 0;  // packets with reserved room, arrived ones included
};

// Stores packets until their slice may be executed in its order. When the first packet of a slice
// arrives, room is reserved for all its packets or for none, because a packet that has been
// acknowledged cannot be refused later. It does not know orders or peers. Sequences owns it;
// only the thread that runs the engine uses it.
class Parking {
 public:
  static constexpr uint32_t bytes_of_peer = 1u << 20;
  static constexpr uint32_t most_of_peer = 256;  // packets
  // Works up to this size have room, whatever the size of their packets.
  static constexpr uint32_t bytes_always = most_of_peer * 1024;

  explicit Parking(uint32_t packets);

  // Returns how many packets of one peer may be stored.
  static uint32_t share(uint32_t packet_bytes);
  // Reserves room for `packets` packets. `has`: the packets for which the same peer already has
  // room. Returns false if the peer would not leave as much room for others as it has itself.
  bool reserve(Kept& kept, uint32_t packets, uint32_t has);
  void keep(Kept& kept, const transport::Received& packet);
  // The slice turns out to have only `packets` packets: gives the other reservations back, and
  // returns how many they were.
  uint32_t limit(Kept& kept, uint32_t packets);
  // Removes the oldest packet and calls `each` with it; the packet is valid until `each` returns.
  // Returns false if there is none.
  template <class Each>
  bool take(Kept& kept, Each&& each);
  // Removes all packets and reservations.
  void release(Kept& kept);

 private:
  static constexpr uint32_t none = Kept::none;
  static constexpr size_t place_bytes = 64 * 1024 + 256;  // the largest packet there is

  struct Place {
    uint32_t next;
    uint32_t bytes;
    bool last;
    bool in_order;
  };

  std::span<std::byte> data(uint32_t place) { return {&bytes_[place * place_bytes], place_bytes}; }
  void give_back(uint32_t place);

  RegionArray<Place> places_;
  RegionArray<std::byte> bytes_;
  uint32_t vacant_;  // free places that are not reserved
  uint32_t free_ = none;
  uint32_t touched_ = 0;
};

template <class Each>
bool Parking::take(Kept& kept, Each&& each) {
  if (kept.count == 0) return false;
  const uint32_t place = kept.first;
  const Place& at = places_[place];
  transport::Received packet{};
  packet.last = at.last;
  packet.in_order = at.in_order;
  packet.head = packet.bytes = data(place).first(at.bytes);
  kept.first = at.next;
  --kept.count;
  ++vacant_;
  each(packet);
  give_back(place);
  return true;
}

}  // namespace urma::jetty
