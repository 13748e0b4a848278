// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"

namespace urma::congestion {

// LDCP (UB 6.6.1; draft-dai-tsvwg-pfc-free-congestion-control-01): a window that follows the share
// of bytes with ECN marks; it needs nothing else of switches. A flow begins with all that the path
// holds, since most flows end within a round trip.
//
// Only the abstract of the draft is public: a window, ECN with WRED as the only signal, a start at
// full speed. What an acknowledgement changes was not read there but written from memory: bytes
// without a mark increase the window by `alpha` packets in a round trip, and bytes with a mark
// reduce it by `beta` times their number.
class Ldcp final : public Controller {
 public:
  explicit Ldcp(const Settings& settings);

  Signal request(const Sent&) override { return {}; }
  void handle(const Acknowledged& event) override;
  void handle(const Lost& event) override;
  void handle(const Notified&) override {}
  void handle(const Spurious& event) override;
  Allowance allowance(Time) const override { return {window_bytes(), Time::min()}; }
  uint64_t window_bytes() const override;

 private:
  void set_window(double bytes);

  double window_;
  double undo_ = 0;  // the window before the last loss; zero if there is nothing to undo
  uint64_t limit_;
  Time recovery_until_ = Time::min();  // losses before this time belong to the last cut
  uint32_t packet_;
};

}  // namespace urma::congestion
