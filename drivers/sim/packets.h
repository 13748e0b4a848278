// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/region.h"
#include "urma/core/endpoint.h"
#include "wire/frame.h"

namespace urma::drivers::sim {

// The packets of a network that are on their way or wait at a port: what the network knows of each,
// and its bytes, in reserved memory. It knows them by their indices. Memory is touched as far as
// packets exist at a time.
class Packets {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr uint32_t capacity = 64 * 1024;  // packets
  static constexpr size_t largest = 9216;          // bytes of a packet

  struct Packet {
    Endpoint from;
    Endpoint to;
    uint32_t from_place;
    uint32_t to_place;  // `none` if the network did not know the address yet
    uint32_t bytes;
    bool corrupt;
    Ecn ecn;
    uint8_t switch_queue = 0;
    uint8_t lane = 0;
    uint16_t cci = 0;
  };

  Packets() : storage_(size_t{capacity} * largest), packets_(capacity) {
    vacant_.reserve(capacity);
  }

  // Returns the index of a vacant packet; `none` if there is none.
  uint32_t take() {
    if (vacant_.empty()) return made_ < capacity ? made_++ : none;
    const uint32_t packet = vacant_.back();
    vacant_.pop_back();
    return packet;
  }
  void put_back(uint32_t packet) { vacant_.push_back(packet); }
  Packet& operator[](uint32_t packet) { return packets_[packet]; }
  std::byte* bytes_of(uint32_t packet) { return storage_.data() + size_t{packet} * largest; }

 private:
  Region storage_;
  RegionArray<Packet> packets_;
  std::vector<uint32_t> vacant_;  // of those that were taken before, the latest last
  uint32_t made_ = 0;             // how many were ever taken: the first ones
};

}  // namespace urma::drivers::sim
