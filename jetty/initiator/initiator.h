// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "jetty/initiator/copied_works.h"
#include "jetty/initiator/cutter.h"
#include "jetty/initiator/datagram_works.h"
#include "jetty/initiator/light_works.h"
#include "jetty/initiator/responses.h"
#include "jetty/initiator/withdrawals.h"

namespace urma::jetty {

// Carries works to their completion, each once: takes them from the Jetties, begins each when its
// turn has come, and passes on to the parts what the transport and the clock report (README.md). It
// does not know packet numbers or losses. Transactions owns it; only the thread that runs the
// engine calls it.
class Initiator {
 public:
  struct Limits {
    uint32_t jetties;
    uint32_t flows;
    uint32_t slices;
  };
  Initiator(const Limits& limits, Jetties& jetties, PeerStates& peers,
            transport::Channels& channels, Staging& staging, uint64_t seed);
  // The parts refer to one another.
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  // ---- from the application

  // Sends or copies the work that was just posted before anything is noted of it, if it is small
  // and no other work must precede it. If this did anything, `take` must follow, which notes the
  // work while the packet is on its way.
  DoneAhead send_ahead(const Jetty& jetty) { return cutter_.cut_ahead(jetty); }
  // Copies works that are being posted to or from mapped memory and completes them, as CopiedWorks.
  // Copies nothing if a pass is needed for that, because the state of the peer is not being watched
  // yet.
  CopiedInPost copy_in_post(Jetty& jetty, std::span<const Work> works, uint32_t budget) {
    transport::Channel* const channel = copied_.channel(jetty);
    if (channel == nullptr || !channel->watched()) return {};
    return copied_.copy(jetty, *channel, works, budget);
  }
  // Takes at most `budget` posted works, and returns how many it took. `done`: what `send_ahead`
  // has done with the first of them.
  uint32_t take(Jetty& jetty, uint32_t budget, Time now, DoneAhead done = {});
  // Takes all posted works, but begins none of them.
  void note(Jetty& jetty, Time now);
  // Ends all outstanding works of this Jetty, each as soon as its outcome is known.
  void flush(Jetty& jetty, Time now) {
    lights_.record(jetty, now);
    withdrawals_.flush(jetty, now);
  }
  // Ends the cancelled works of this Jetty, each as soon as its outcome is known.
  void end_cancelled(Jetty& jetty, Time now) { withdrawals_.end_cancelled(jetty, now); }
  // Ends the works that use this memory; `using_memory` returns whether such a work is left.
  void flush_memory(const std::byte* base, uint64_t bytes, Time now);
  bool using_memory(const std::byte* base, uint64_t bytes, Time now);
  // Call it before a Jetty is destroyed. The Jetty has no outstanding work.
  void detach(Jetty& jetty);
  Copier& copier() { return copier_; }
  CarriedSlices& carried() { return carried_; }

  // ---- outwards

  // Offers slices of queued works to their channels, or copies them if the target's memory is
  // mapped: at most `budget` slices, where a large copy counts as several. Returns false if it
  // could do nothing.
  bool cut(uint32_t budget, Time now);
  void write(std::span<transport::PacketSlot> packets) { cutter_.write(packets); }
  // As SliceEvents.
  void begin_fill(uint64_t fill) { events_.begin_fill(fill); }
  void settled(uint64_t fill, Time now) { events_.settled(fill, now); }
  bool settling() const { return events_.settling(); }

  // ---- inwards

  void delivered(transport::SliceRef slice, Time now);
  void handle_response(PeerId peer, const ParsedResponse& response, Time now) {
    responses_.handle(peer, response, now);
  }
  [[gnu::cold]] void up(PeerState& peer, Time now);
  [[gnu::cold]] void down(PeerState& peer, transport::Why why, Time now);

  // ---- time

  void handle_timers(Time now);
  Time next_deadline() const { return std::min(works_.next_deadline(), events_.next_deadline()); }

  const InitiatorCounters& counters() const { return counters_; }
  // Returns whether works that waited for others may begin now; the next `cut` begins them.
  bool lets_go() const { return order_.lets_go(); }
  // Returns how many flows may have works to cut.
  uint32_t active() const { return flows_.active(); }
  uint32_t open_slices() const { return slices_.size(); }

 private:
  void launch(Jetty& jetty, uint16_t lease, Status refused, const DoneAhead& done, Time now);
  bool take_light(Jetty& jetty, const DoneAhead& before, Time now);
  [[gnu::cold]] void start(Jetty& jetty, uint16_t lease, Time now);
  [[gnu::cold]] bool release(Time now);

  Jetties& jetties_;
  InitiatorCounters counters_;
  const InitiatorCommon common_;
  Flows flows_;
  WorkOrder order_;
  OpenWorks works_;
  FlowSlices slices_;
  Offers offers_;
  const SliceEvents::Uses parts_{flows_, slices_, offers_, order_, works_};
  SliceEvents events_;
  LightWorks lights_{common_, flows_, slices_, offers_, works_};
  CarriedSlices carried_;
  Copier copier_{counters_, common_.staging};
  CopiedWorks copied_{common_, flows_, works_, copier_};
  Cutter cutter_{common_, {parts_, events_, copier_, lights_, carried_}};
  Responses responses_{common_, parts_, events_, lights_};
  Withdrawals withdrawals_{common_, flows_, slices_, works_, {events_, carried_}};
  DatagramWorks datagrams_{common_, works_};
  bool noting_ = false;
};

}  // namespace urma::jetty
