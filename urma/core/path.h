// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma {

inline constexpr unsigned most_paths = 8;  // the largest number of paths of one device

// One of several paths to a peer, as this end sees it (Device::paths).
struct Path {
  Endpoint from;        // the address of this device
  Endpoint to;          // the address of the peer
  bool usable = false;  // whether it is known to carry packets: it has answered, and is not lost
  Duration rtt{};       // the round trip of the last probe that was answered; zero if none was
  uint64_t sent = 0;    // packets with works or answers, retransmissions included
  uint64_t lost = 0;    // how many of these packets were believed lost
  uint32_t number = 0;  // as in Event::path; constant for as long as the path exists
};

}  // namespace urma
