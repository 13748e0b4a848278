// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/active_pairs.h"
#include "engine/passive_pairs.h"

namespace urma::engine {

// Both kinds of pairs of a device (drivers/remote_access.h), and what the driver reports about
// them. Called by the thread that runs the pass.
class Pairs {
 public:
  struct Uses {
    drivers::RemoteAccess& access;
    LineJetty& lines;
    transport::Transport& transport;
    jetty::CarriedSlices& slices;
    const memseg::SegmentTable& segments;
    TokenJudge& judge;
  };
  explicit Pairs(const Uses& uses);
  ~Pairs();
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  // Handles what the driver has to report, and what is due. Returns true if there was anything.
  bool pass(Time now);
  // The slices of this pass have been handed over.
  void flush() { access_.flush(); }
  PassivePairs& passive() { return passive_; }
  Time next_deadline() const {
    const auto again = access_.look_again();
    const Time next = std::min(active_.next_look(), look_at_);
    return again ? std::min(next, passed_at_ + *again) : next;
  }
  // Handles a line that has arrived. Returns false if it is not about pairs.
  [[gnu::cold]] bool handle(PeerId from, std::string_view line, Time now);

 private:
  static constexpr Duration between_looks = std::chrono::seconds(1);

  drivers::RemoteAccess& access_;
  jetty::CarriedSlices& slices_;
  ActivePairs active_;
  PassivePairs passive_;
  Time look_at_ = never;
  Time passed_at_{};
};

}  // namespace urma::engine
