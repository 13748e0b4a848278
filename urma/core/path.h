#pragma once

#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma {

inline constexpr unsigned most_paths = 8;  // between two devices

// One of several paths to a peer, as this end sees it (Device::paths).
struct Path {
  Endpoint from;        // of this device
  Endpoint to;          // of the peer
  bool usable = false;  // false: lost, or not found to carry anything yet
  Duration rtt{};       // of the last question that was answered; zero: none was
  // Since the peer is known, packets that carry works and answers; a packet that is sent again
  // counts for each time.
  uint64_t sent = 0;
  uint64_t lost = 0;    // believed lost
  uint32_t number = 0;  // as Event::path says it: the same for as long as the path is there
};

}  // namespace urma
