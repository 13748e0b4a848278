// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/turns.h"
#include "jetty/initiator/common.h"
#include "jetty/initiator/flows.h"

namespace urma::jetty {

// Decides which works wait here for earlier ones, and which order is asked of a target that keeps
// one (docs/reliability.md, order). It begins no work itself. The Initiator owns it; only the
// thread that runs the engine calls it.
class WorkOrder {
 public:
  WorkOrder(uint32_t jetties, const InitiatorCommon& common, Flows& flows);

  // ---- which works wait here

  // Returns whether the work that was just taken may begin. If not, it is held.
  bool may_begin(Jetty& jetty, uint16_t lease);
  // A work of a Jetty with held works has ended.
  [[gnu::cold]] void left(Jetty& jetty, uint16_t lease);
  // Held works of the Jetty may begin or end. They do so later, because the caller is in the middle
  // of other works.
  void look_again(Jetty& jetty) { to_release_.add(jetties_.index_of(jetty)); }
  // Returns whether there is such a Jetty.
  bool lets_go() const { return to_release_.size() > 0; }
  // Returns such a Jetty, or null if there is none any more.
  Jetty* take_jetty();
  // Returns a held work of the Jetty that need not wait any longer.
  std::optional<uint16_t> release(Jetty& jetty);

  // ---- what is asked of the target

  // Returns the order that is sent with the work. A work that has waited here for all works that it
  // must follow is not sent as strong any more.
  Order order_of(const Jetty& jetty, const Berth& berth, const Flow& flow);
  // Returns whether the next slice of the work asks for a sequence context: the first one to a
  // target that has an order does.
  bool asks_sequence(const Flow& flow, const Jetty& jetty, const Berth& berth);
  // Records whether the target keeps order, as its answer says, or that the slice ended without an
  // answer.
  void note_sequence(Slice& slice, bool kept);

 private:
  uint32_t group_of(const Jetty& jetty, const Berth& berth);

  Jetties& jetties_;
  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  Turns to_release_;  // Jetties
};

}  // namespace urma::jetty
