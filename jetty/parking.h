#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/region.h"
#include "transport/upper.h"

namespace urma::jetty {

// Packets of one slice that came before its turn, oldest first.
struct Kept {
  uint32_t first = UINT32_MAX;
  uint32_t last = UINT32_MAX;
  uint32_t count = 0;
  uint32_t room = 0;      // packets that may still come, for which a place is reserved
  uint32_t reserved = 0;  // at first
};

// Where packets wait until their slice may be executed. A slice has places for all its packets, or
// none: a packet that was acknowledged cannot be refused.
class Parking {
 public:
  static constexpr uint32_t bytes_of_peer = 1u << 20;
  static constexpr uint32_t most_of_peer = 256;  // packets
  // So much of one work has a place whatever its packets are.
  static constexpr uint32_t bytes_always = most_of_peer * 1024;

  explicit Parking(uint32_t packets);

  // Packets that one peer may have here.
  static uint32_t share(uint32_t packet_bytes);
  // `has`: places of the same peer, which leaves as many to others. False: there are not so many.
  bool reserve(Kept& kept, uint32_t packets, uint32_t has);
  void keep(Kept& kept, const transport::Received& packet);
  // It has no more packets than these: gives back other places, and returns how many.
  uint32_t limit(Kept& kept, uint32_t packets);
  // The oldest goes: calls `each` with a packet that is good until it returns. False: none is left.
  template <class Each>
  bool take(Kept& kept, Each&& each);
  // All of it goes.
  void release(Kept& kept);

 private:
  static constexpr uint32_t none = UINT32_MAX;
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
  uint32_t vacant_;  // less what is reserved
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
