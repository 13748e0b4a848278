// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/dirty_set.h"
#include "base/turns.h"
#include "engine/command_queue.h"
#include "engine/event_queue.h"
#include "engine/fills.h"
#include "engine/lent_frames.h"
#include "engine/line_jetty.h"
#include "jetty/transactions.h"
#include "transport/transport.h"

namespace urma::engine {

// Until when an engine can rest, if nothing arrives and nothing is posted: what the last pass has
// left, and what is due next. It runs nothing. Engine owns it; only the thread that runs the engine
// calls it.
class Rest {
 public:
  // The parts of the engine; all outlive this object. `ready`: Jetties with posted works that the
  // last pass did not reach.
  struct Parts {
    jetty::Transactions& transactions;
    const transport::Transport& transport;
    const EventQueue& events;
    const LineJetty& lines;
    const LentFrames& frames;
    const Turns& ready;
    const Fills& fills;
    const CommandQueue& commands;
    const DirtySet& dirty;
  };
  explicit Rest(const Parts& parts) : parts_(parts) {}

  // Returns the time until which all remaining work can wait.
  Time until() const { return until_; }
  // Returns the transport's next deadline, as of the last plan.
  Time timers_due() const { return timers_due_; }

  // Returns whether nothing that the last pass left is due, and nothing has been requested since.
  // Work that waits for memory or for a peer continues when a packet arrives; queries for names are
  // waiting commands.
  bool quiet(Time now) const {
    return now < until_ && parts_.fills.all_settled() && !parts_.commands.waits() &&
           !parts_.dirty.any() && !parts_.commands.arrived();
  }
  // Leaves the rest of a pass, if there is any, to the next one.
  void leave(Time now) {
    until_ = now;
    left_ = true;
  }
  bool left() const { return left_; }
  // The next pass begins, and has received something or not: plans now, if there was no rest.
  void take_up(Time now, bool received) {
    planned_ = false;
    if (!left_) return;
    left_ = false;
    planned_ = !received && !goes_on() && parts_.transactions.initiator().active() == 0;
    if (planned_) until_ = due(now);
  }
  // Returns whether it has planned, so that `until` is new though the pass has found nothing.
  bool planned() const { return planned_; }
  // A pass has come to its end. Returns whether there is more to do at once; `busy`: so it seems.
  bool plan(Time now, bool busy) {
    busy = busy || goes_on();
    const Time next = due(now);
    until_ = busy ? now : next;
    return busy;
  }

 private:
  // A port does not report when frames have settled: it must be asked. So long a completion may be
  // delayed after the port has settled the frames that it waits for.
  static constexpr Duration settle_patience = std::chrono::microseconds(50);

  bool goes_on() const {
    return parts_.frames.waiting() > 0 || parts_.ready.size() > 0 ||
           parts_.transport.wants_to_send() || parts_.lines.waits() ||
           parts_.transactions.initiator().lets_go();
  }
  Time due(Time now) {
    jetty::Transactions& transactions = parts_.transactions;
    timers_due_ = parts_.transport.next_deadline();
    Time next =
        std::min({timers_due_, transactions.initiator().next_deadline(),
                  transactions.target().answers().next_deadline(), parts_.events.next_deadline()});
    if (transactions.initiator().settling()) next = std::min(next, now + settle_patience);
    return std::max(next, now);
  }

  const Parts parts_;
  Time until_{};
  Time timers_due_{};
  bool left_ = false;
  bool planned_ = false;
};

}  // namespace urma::engine
