// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/routes.h"

namespace urma::transport {

// When packets of a channel may leave, by the controllers of its routes. With a single path all of
// them may leave at any time, as far as this class knows.
//
// It is a reference and is passed by value. The `Routes` outlive it. Only the thread that runs the
// engine calls it.
class ChannelDepartures {
 public:
  // `several`: null if the channel has one path.
  explicit ChannelDepartures(Routes* several) : several_(several) {}

  // Returns whether packets may have to wait for their departure; whether any route permits a
  // departure now; and when the first of those does that have room for the packet, or of all if
  // `bytes` is 0.
  bool paces() const { return several_ != nullptr && several_->windows().paces(); }
  bool may_depart(Time now) const {
    return several_ == nullptr || several_->scheduler().may_depart(now);
  }
  Time departure(uint32_t bytes) const {
    return several_ == nullptr ? Time{} : several_->scheduler().departure(bytes);
  }
  // A packet is about to leave: a new one is counted as in flight already, another one is not.
  // Returns what it asks switches for.
  congestion::Signal depart(uint8_t route, const congestion::Sent& packet) const {
    return several_ == nullptr ? congestion::Signal{} : several_->windows().depart(route, packet);
  }
  // That packet was written, and is smaller than foreseen.
  void correct(uint8_t route, const congestion::Written& packet) const {
    if (several_ != nullptr) several_->windows().correct(route, packet);
  }

 private:
  Routes* several_;
};

}  // namespace urma::transport
