// SPDX-License-Identifier: Apache-2.0
#include "jetty/parking.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace urma::jetty {

Parking::Parking(uint32_t packets)
    : places_(packets), bytes_(packets * place_bytes), vacant_(packets) {}

uint32_t Parking::share(uint32_t packet_bytes) {
  return std::min(most_of_peer, bytes_of_peer / std::max(packet_bytes, 1u));
}

bool Parking::reserve(Kept& kept, uint32_t packets, uint32_t has) {
  if (packets > vacant_ || has + packets > vacant_ - packets) return false;
  vacant_ -= packets;
  kept.room = kept.reserved = packets;
  return true;
}

void Parking::keep(Kept& kept, const transport::Received& packet) {
  URMA_ASSERT(packet.bytes.size() <= place_bytes, "no packet is larger");
  if (kept.room == 0) return;  // more packets than its slice can have
  --kept.room;
  uint32_t place = free_;
  if (place != none) {
    free_ = places_[place].next;
  } else {
    place = touched_++;
  }
  places_[place] = {.next = none,
                    .bytes = static_cast<uint32_t>(packet.bytes.size()),
                    .last = packet.last,
                    .in_order = packet.in_order};
  // The headers were checked in a copy of their own (`head`), because `bytes` may change while it
  // is read.
  const size_t head = packet.head.size();
  std::memcpy(data(place).data(), packet.head.data(), head);
  std::memcpy(data(place).data() + head, packet.bytes.data() + head, packet.bytes.size() - head);
  (kept.count > 0 ? places_[kept.last].next : kept.first) = place;
  kept.last = place;
  ++kept.count;
}

uint32_t Parking::limit(Kept& kept, uint32_t packets) {
  const uint32_t more = kept.reserved > packets ? kept.reserved - packets : 0;
  const uint32_t given_back = std::min(more, kept.room);
  kept.room -= given_back;
  kept.reserved -= given_back;
  vacant_ += given_back;
  return given_back;
}

void Parking::give_back(uint32_t place) {
  places_[place].next = free_;
  free_ = place;
}

void Parking::release(Kept& kept) {
  while (take(kept, [](const transport::Received&) {})) {
  }
  vacant_ += kept.room;
  kept.room = 0;
}

}  // namespace urma::jetty
