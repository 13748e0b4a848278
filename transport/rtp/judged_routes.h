// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/routes.h"

namespace urma::transport {

// The routes of a channel, as the rules of loss use them. If each route is judged apart, a packet
// has been overtaken once a later one of its own route has arrived. If all packets are judged
// together, as on a single path, each function returns a value that changes nothing.
//
// It is a reference and is passed by value. The `Routes` outlive it. Only the thread that runs the
// engine calls it.
class JudgedRoutes {
 public:
  // `apart`: null if all packets are judged together.
  explicit JudgedRoutes(Routes* apart) : apart_(apart) {}

  // See RouteDelays; `judge` is called before the others.
  void judge(Duration tolerance, Time now) const {
    if (apart_ != nullptr) apart_->delays().judge(tolerance, now);
  }
  // Returns whether a later packet of the route has overtaken one that left at `sent`.
  bool overtaken(uint8_t route, Time sent) const {
    return apart_ != nullptr && sent < apart_->delays().overtaken_before(route);
  }
  Duration later(uint8_t route) const {
    return apart_ == nullptr ? Duration{} : apart_->delays().later(route);
  }
  Time patience(uint8_t route, Time sent, Duration tolerance) const {
    return apart_ == nullptr ? never : apart_->delays().patience(route, sent, tolerance);
  }

 private:
  Routes* apart_;
};

}  // namespace urma::transport
