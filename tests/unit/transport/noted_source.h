// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "base/bits.h"
#include "transport/upper.h"

namespace urma::test {

// A source whose packets name their slice: the slot and the index of the packet, and padding,
// follow the transport header. It records what it was asked to write.
class NotedSource final : public transport::PacketSource {
 public:
  static constexpr uint8_t bytes = 16;

  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      std::byte* const at = packet.frame->head + packet.frame->head_bytes;
      store_be<8>(at, packet.slice.slot);
      store_be<8>(at + 8, packet.index);
      packet.frame->head_bytes = static_cast<uint8_t>(packet.frame->head_bytes + bytes);
      packet.withdrawn = withdrawn.contains(packet.slice.slot);
      written.push_back(packet);
    }
  }

  std::set<uint32_t> withdrawn;  // slots of cancelled slices
  std::vector<transport::PacketSlot> written;
};

}  // namespace urma::test
