// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/open_works.h"

#include "base/assert.h"
#include "jetty/channel_status.h"
#include "jetty/slice_table.h"

namespace urma::jetty {
namespace {

// Returns the status of a work after one more part of it has ended. The status `unknown` never
// changes again.
Status combine(Status before, Status now) {
  if (now == Status::ok || before == Status::unknown) return before;
  return before == Status::ok || now == Status::unknown ? now : before;
}

}  // namespace

OpenWorks::OpenWorks(uint32_t jetties, const InitiatorCommon& common, Flows& flows,
                     WorkOrder& order)
    : jetties_(common.jetties),
      channels_(common.channels),
      counters_(common.counters),
      flows_(flows),
      order_(order),
      timers_(jetties) {}

void OpenWorks::add(Jetty& jetty, uint16_t lease, Time now) {
  WorkState& work = jetty.works[lease];
  work.older = jetty.newest;
  if (jetty.newest != Queues::none) {
    jetty.works[jetty.newest].newer = lease;
  } else {
    jetty.oldest = lease;
  }
  jetty.newest = lease;
  ++jetty.outstanding;
  jetty.fetching =
      static_cast<uint16_t>(jetty.fetching + fetches(jetty.queues->jfs().berth(lease)));
  watch(jetty, now);
}

void OpenWorks::detach(Jetty& jetty) {
  URMA_ASSERT(jetty.outstanding == 0, "a Jetty is destroyed only after its works have ended");
  timers_.disarm(jetties_.index_of(jetty));
}

void OpenWorks::give_up_rest(Jetty& jetty, uint16_t lease, Status status, Time now) {
  WorkState& work = jetty.works[lease];
  work.cut = true;
  work.status = combine(work.status, status);
  if (work.open_slices == 0) finish(jetty, lease, work.status, false, now);
}

void OpenWorks::cannot_access(Jetty& jetty, uint16_t lease) {
  WorkState& work = jetty.works[lease];
  work.inaccessible = true;
  work.status = combine(work.status, Status::bad_work);
  look_no_later(jetty, Time{});
}

void OpenWorks::slice_ended(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now) {
  WorkState& work = jetty.works[lease];
  --work.open_slices;
  work.progress = now;
  work.status = combine(work.status, status);
  if (status == Status::ok || status == Status::unknown) work.executed = true;
  if (work.cancelled && !work.cut && !work.in_line) {
    // The work's last slice has waited for the others, and will not be sent any more.
    work.status = combine(work.status, Status::flushed);
  }
  if (work.status != Status::ok) {
    // Later parts of a failed work are not sent.
    if (work.in_line) flows_.take_out_of_line(flows_.at(work.flow), jetty, lease);
    work.cut = true;
  }
  if (work.open_slices > 0) return;
  if (!work.cut) {
    Flow& flow = flows_.at(work.flow);
    // Another slice settled after the end of its peer: the rest has nowhere to go.
    if (flow.peer_over) {
      const auto end = step(SliceState::held, SliceEvent::peer_over, false);
      return give_up_rest(jetty, lease, end.status, now);
    }
    // The slice that carries the immediate or the notification waited for all others.
    if (!work.in_line) flows_.put_in_line(flow, jetty, lease, true);
    return;
  }
  finish(jetty, lease, work.status, answered, now);
}

void OpenWorks::finish(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now) {
  WorkState& work = jetty.works[lease];
  const Berth& berth = jetty.queues->jfs().berth(lease);
  // Since a part was executed, the status must not say that the work had no effect.
  if (work.executed && claims_not_executed(status)) status = Status::unknown;
  if (status == Status::unknown) ++counters_.unknown;
  if (status == Status::peer_unreachable) status = status_of(channels_.why_not(berth.peer));
  if (answered) {
    Flow& flow = flows_.at(work.flow);
    flow.last_answer = now;
    flow.last_answered = work.number;
  }

  (work.older != Queues::none ? jetty.works[work.older].newer : jetty.oldest) = work.newer;
  (work.newer != Queues::none ? jetty.works[work.newer].older : jetty.newest) = work.older;
  --jetty.outstanding;
  jetty.fetching = static_cast<uint16_t>(jetty.fetching - fetches(berth));
  if (jetty.gated) [[unlikely]]
    order_.left(jetty, lease);

  work.status = status;
  const bool failed = status != Status::ok;
  if (failed && jetty.ordering.suspend_on_error) [[unlikely]]
    suspend(jetty, now);
  if (jetty.gate.done(lease, failed)) {
    show(jetty, lease, status);
  } else if (!berth.signalled && !failed) {
    jetty.queues->jfs().chain(lease, jetty.chained);
    jetty.chained = lease;
  }
  while (const auto released = jetty.gate.next_released()) {
    show(jetty, *released, jetty.works[*released].status);
  }
}

void OpenWorks::complete_light(Jetty& jetty, uint16_t lease) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  if (berth.operation == Operation::atomic && berth.doubtful) [[unlikely]] {
    ++counters_.unknown;
    return show(jetty, lease, Status::unknown);
  }
  if (berth.signalled) return show(jetty, lease, Status::ok);
  jetty.queues->jfs().chain(lease, jetty.chained);
  jetty.chained = lease;
}

// The berths of completed unsignalled works are given back with the next completion.
void OpenWorks::show(Jetty& jetty, uint16_t lease, Status status) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  const bool atomic = berth.operation == Operation::atomic;
  jetty.queues->jfs().chain(lease, jetty.chained);
  jetty.chained = Queues::none;
  jetties_.complete(
      jetty,
      {.status = status,
       .operation = berth.operation,
       .with_immediate = berth.with_immediate,
       .bytes = berth.bytes,
       .tag = berth.tag,
       .immediate = atomic ? jetty.queues->jfs().values(lease).fetched : berth.immediate,
       .jetty = jetty.id,
       .from = {}},
      lease);
}

// The works that wait in the Jetty are flushed when its works are next looked at, because the
// caller is ending one of them.
void OpenWorks::suspend(Jetty& jetty, Time now) {
  if (jetty.state != JettyState::ready) return;
  jetty.state = JettyState::suspended;
  cancel_all(jetty, now);
  order_.look_again(jetty);
}

}  // namespace urma::jetty
