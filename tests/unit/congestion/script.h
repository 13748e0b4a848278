// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "congestion/arithmetic.h"
#include "congestion/controller.h"
#include "congestion/guard.h"

namespace urma::test {

// Packets of 1000 bytes, a base round trip of 100 us, and a link of 1 GB/s: 100 packets fit.
inline constexpr congestion::Settings small_packets{.packet_bytes = 1000,
                                                    .limit_bytes = 1'000'000,
                                                    .bytes_per_second = 1e9,
                                                    .base_rtt = std::chrono::microseconds(100),
                                                    .seed = 1};

// A controller, and the events of its channel one after the other.
template <class Kind>
struct Script {
  explicit Script(const congestion::Settings& settings = small_packets) : controller(settings) {}

  // In a full window, as the acknowledgements.
  congestion::Signal send(uint32_t bytes = 1000, bool again = false) {
    return controller.request({.now = now,
                               .number = ++number,
                               .bytes = bytes,
                               .again = again,
                               .inflight_bytes = controller.window_bytes()});
  }
  // An acknowledgement of one packet after a round trip of this much.
  void acknowledge(const congestion::Feedback& feedback, Duration sample, uint64_t bytes = 1000) {
    controller.handle(congestion::Acknowledged{.now = now,
                                               .rtt = sample,
                                               .bytes = bytes,
                                               .inflight_bytes = controller.window_bytes(),
                                               .sample = sample,
                                               .least_rtt = base,
                                               .feedback = &feedback});
  }
  // One window of acknowledgements within one round trip.
  void round(const congestion::Feedback& feedback, Duration sample) {
    const auto packets = static_cast<int>(controller.window() / 1000);
    for (int i = 0; i < packets; ++i) acknowledge(feedback, sample);
    now += sample;
  }
  double window() const { return controller.window(); }
  void lose(bool timed_out) {
    controller.handle(
        congestion::Lost{.now = now, .rtt = base, .bytes = 1000, .timed_out = timed_out});
  }

  static constexpr Duration base = std::chrono::microseconds(100);
  Kind controller;
  Time now{std::chrono::seconds(1)};
  uint64_t number = 0;
};

}  // namespace urma::test
