// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma::transport {

// The state of a channel, or of one of its paths, for statistics. The channel, its medium and the
// transport fill what they know.
struct ChannelView {
  static constexpr uint64_t unknown = UINT64_MAX;
  static constexpr Duration unknown_time = Duration::max();

  enum class State : uint8_t {
    up,
    silent,  // the peer's process exists but reads nothing
    lost,    // the path, while others carry the channel
  };
  // Why the channel does not use the congestion control of its device.
  enum class Instead : uint8_t {
    no,            // it uses that
    not_reported,  // the peer does not return the reports that it needs
    lossless,      // the medium loses nothing, so that there is none
  };

  Endpoint from{};
  Endpoint to{};
  uint8_t path = 0;  // the number of the path; 0 if there is only one
  State state = State::up;
  Instead instead = Instead::no;
  std::string_view congestion = "none";  // valid for ever
  Duration rtt = unknown_time;           // smoothed
  Duration least_rtt = unknown_time;
  Duration age = unknown_time;      // since the channel was made
  Duration unheard = unknown_time;  // since the peer last sent anything
  uint64_t window_bytes = unknown;
  uint64_t inflight_bytes = unknown;
  uint64_t bytes_per_second = unknown;  // if its packets are paced
  uint64_t sent = unknown;              // data packets, each copy
  uint64_t lost = unknown;              // of these, believed lost
  uint64_t retransmitted = unknown;
  uint64_t spurious = unknown;   // believed lost, and arrived
  uint64_t not_ready = unknown;  // times that the peer was not ready
  // Bytes of data packets with headers, of each packet once, modulo 2^32, which keeps a channel
  // small: the page adds up the progress between two reports.
  uint64_t acknowledged_bytes = unknown;
};

}  // namespace urma::transport
