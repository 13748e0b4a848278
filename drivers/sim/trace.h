// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma::drivers::sim {

// A hash of everything that a network delivers. Two runs with the same seed have the same hash.
class Trace {
 public:
  // Adds a packet. `bytes`: the part of the packet that is the same in each run.
  void add(Time now, const Endpoint& from, const Endpoint& to, uint32_t length,
           std::span<const std::byte> bytes) {
    add_number(now.time_since_epoch().count());
    // Only the last bytes of addresses: the others may be random, whatever the seed.
    for (const Endpoint* end : {&from, &to}) mix(std::span(end->address.bytes).last(2));
    add_number(length);
    mix(bytes);
  }
  template <class Number>
  void add_number(Number number) {
    mix(std::as_bytes(std::span(&number, 1)));
  }
  uint64_t hash() const { return hash_; }

 private:
  // FNV-1a
  void mix(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash_ = (hash_ ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
    }
  }

  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace urma::drivers::sim
