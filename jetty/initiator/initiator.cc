#include "jetty/initiator/initiator.h"

#include <algorithm>

#include "base/assert.h"
#include "jetty/channel_status.h"

namespace urma::jetty {
namespace {

// Returns the status of a work after one more part of it has ended. The status `unknown` never
// changes again.
Status combine(Status before, Status now) {
  if (now == Status::ok || before == Status::unknown) return before;
  return before == Status::ok || now == Status::unknown ? now : before;
}

}  // namespace

Initiator::Initiator(const Limits& limits, Jetties& jetties, PeerStates& peers,
                     transport::Channels& channels, uint64_t seed)
    : jetties_(jetties),
      peers_(peers),
      channels_(channels),
      flows_(limits.flows),
      flows_by_key_(limits.flows),
      slices_(limits.slices),
      jetty_timers_(limits.jetties),
      slice_timers_(limits.slices),
      active_(limits.flows),
      to_release_(limits.jetties),
      settling_(limits.slices),
      jitter_(seed) {}

// Begins a work that need not wait any more.
inline void Initiator::launch(Jetty& jetty, uint16_t lease, Status refused, Time now) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  // Most Jetties have one flow, which is found without a call.
  Flow* flow = refused == Status::ok ? first_flow(jetty, berth.peer) : nullptr;
  if (flow == nullptr && refused == Status::ok) flow = flow_for(jetty, berth.peer, refused);
  if (flow == nullptr) return finish(jetty, lease, refused, false, now);
  WorkState& work = jetty.works[lease];
  work.number = ++flow->works;
  if (berth.order != Order::none) work.order = order_of(jetty, berth, *flow);
  begin(*flow, jetty, lease, now);
}

void Initiator::start(Jetty& jetty, uint16_t lease, Time now) {
  const bool ready = jetty.state == JettyState::ready;
  launch(jetty, lease, ready ? jetty.queues->jfs().berth(lease).verdict : Status::flushed, now);
}

uint32_t Initiator::take(Jetty& jetty, uint32_t budget, Time now) {
  if (jetty.ordering.mode == ServiceMode::unreliable) [[unlikely]]
    return take_datagrams(jetty, budget, now);
  Leases& berths = jetty.queues->jfs();
  const uint32_t count = std::min(budget, berths.waiting());
  const bool untouched = !noting_ && ahead_.lease == Queues::none;
  for (uint32_t i = untouched ? copy_posted(jetty, count) : 0; i < count; ++i) {
    const uint16_t lease = berths.take_posted();
    const Berth& berth = jetty.queues->jfs().berth(lease);
    ++counters_.works;
    WorkState& work = jetty.works[lease] = {};
    work.progress = now;
    jetty.gate.posted(lease, berth.signalled, jetty.ordering.in_order);
    append(jetty, lease, now);
    const Status refused = jetty.state == JettyState::ready ? berth.verdict : Status::flushed;
    if (jetty.gated || asks_order(berth)) [[unlikely]] {
      if (refused != Status::ok || may_begin(jetty, lease)) start(jetty, lease, now);
    } else {
      launch(jetty, lease, refused, now);
    }
  }
  URMA_ASSERT(ahead_.lease == Queues::none, "`take` takes first the work that was sent ahead");
  return count;
}

void Initiator::note(Jetty& jetty, Time now) {
  if (!jetty.queues->jfs().used()) return;
  noting_ = true;
  take(jetty, jetty.queues->jfs().waiting(), now);
  noting_ = false;
}

// The fast path of nearly all works on mapped memory, those that are small and do not notify. A
// work that is alone in its Jetty waits for no other, and none has to wait for it.
uint32_t Initiator::copy_posted(Jetty& jetty, uint32_t budget) {
  if (jetty.outstanding > 0 || jetty.first_flow == Flow::none || jetty.state != JettyState::ready) {
    return 0;
  }
  Flow& flow = flows_.at(jetty.first_flow);
  if (flow.peer_over || peers_.at(flow.peer).channel == nullptr) return 0;
  Jfs& jfs = jetty.queues->jfs();
  uint32_t done = 0;
  for (const uint32_t count = std::min(budget, jfs.waiting()); done < count; ++done) {
    const uint16_t lease = jfs.next_posted();
    if (!all_copied(jetty, lease, flow)) break;
    jfs.take_posted();
    end_at_once(jetty, lease);
  }
  counters_.works += done;
  return done;
}

bool Initiator::watches_peer(const Jetty& jetty) {
  if (jetty.first_flow == Flow::none) return false;
  const transport::Channel* const channel = peers_.at(flows_.at(jetty.first_flow).peer).channel;
  return channel != nullptr && channel->watched();
}

// Copies the work before anything is recorded. Returns false if the work must be recorded.
bool Initiator::all_copied(const Jetty& jetty, uint16_t lease, Flow& flow) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  if (berth.verdict != Status::ok || berth.bytes > transport::most_at_once || notifies(berth) ||
      !(flow.peer == berth.peer)) {
    return false;
  }
  // A failed work may have to suspend the Jetty, which only `finish` does.
  if (jetty.ordering.suspend_on_error && berth.operation == Operation::atomic) return false;
  return copier_.copy(flow, jetty.queues->jfs(), lease, 0, *peers_.at(flow.peer).channel) > 0;
}

// Completes the only work of a Jetty: no completion has to be withheld for it.
void Initiator::end_at_once(Jetty& jetty, uint16_t lease) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  if (berth.operation == Operation::atomic && berth.doubtful) [[unlikely]] {
    ++counters_.unknown;
    return show(jetty, lease, Status::unknown);
  }
  if (berth.signalled) return show(jetty, lease, Status::ok);
  jetty.queues->jfs().chain(lease, jetty.chained);
  jetty.chained = lease;
}

// If no work waits in line, the first slice of this work, usually its only one, need not wait
// either.
void Initiator::begin(Flow& flow, Jetty& jetty, uint16_t lease, Time now) {
  WorkState& work = jetty.works[lease];
  work.flow = index_of(flow);
  PeerState& peer = peers_.at(flow.peer);
  // Large works take their turn.
  const bool small = !noting_ && jetty.queues->jfs().berth(lease).bytes <= transport::most_at_once;
  if (small && flow.first_to_cut == Queues::none && !flow.to_reoffer && peer.channel != nullptr) {
    cut_one(flow, jetty, lease, peer, now);
  }
  if (!work.cut) put_in_line(flow, jetty, lease, false);
}

// Returns null if the Jetty has no flow to this peer.
Flow* Initiator::find_flow(const Jetty& jetty, PeerId peer) {
  if (Flow* const first = first_flow(jetty, peer)) return first;
  const uint32_t known = flows_by_key_.find(flow_key(peer, number(jetty.id)));
  if (known == Flow::none) return nullptr;
  Flow& flow = flows_.at(known);
  return flow.peer == peer && flow.jetty == jetties_.index_of(jetty) ? &flow : nullptr;
}

Flow* Initiator::flow_for(Jetty& jetty, PeerId peer, Status& why_not) {
  if (Flow* const own = find_flow(jetty, peer)) return own;
  const uint64_t key = flow_key(peer, number(jetty.id));
  const uint32_t known = flows_by_key_.find(key);
  if (!channels_.knows(peer)) {
    why_not = Status::peer_restarted;
    return nullptr;
  }
  Flow* flow = known != Flow::none ? &flows_.at(known) : flows_.create();
  if (flow == nullptr) {
    why_not = Status::no_resources;
    return nullptr;
  }
  if (known == Flow::none) {
    flows_by_key_.insert(key, index_of(*flow));
    flow->peer = peer;
    flow->rc_id = number(jetty.id);
    PeerState& state = peers_.at(peer);
    flow->next_of_peer = state.first_flow;
    state.first_flow = index_of(*flow);
  }
  flow->jetty = jetties_.index_of(jetty);
  flow->next_of_jetty = jetty.first_flow;
  jetty.first_flow = index_of(*flow);
  return flow;
}

// Appends the work to the Jetty's list in post order, which deadlines and completions follow.
void Initiator::append(Jetty& jetty, uint16_t lease, Time now) {
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
  // If the timer is armed, it fires early enough, because it then checks the oldest work.
  const uint32_t timer = jetties_.index_of(jetty);
  if (!jetty_timers_.armed(timer)) jetty_timers_.arm(timer, now + jetty.timeouts.operation);
}

void Initiator::put_in_line(Flow& flow, Jetty& jetty, uint16_t lease, bool first) {
  WorkState& work = jetty.works[lease];
  work.in_line = true;
  work.next_to_cut = first ? flow.first_to_cut : Queues::none;
  if (flow.first_to_cut == Queues::none) {
    flow.first_to_cut = flow.last_to_cut = lease;
  } else if (first) {
    flow.first_to_cut = lease;
  } else {
    jetty.works[flow.last_to_cut].next_to_cut = lease;
    flow.last_to_cut = lease;
  }
  activate(flow);
}

void Initiator::take_out_of_line(Flow& flow, Jetty& jetty, uint16_t lease) {
  WorkState& work = jetty.works[lease];
  uint16_t before = Queues::none;
  for (uint16_t i = flow.first_to_cut; i != lease; i = jetty.works[i].next_to_cut) before = i;
  (before == Queues::none ? flow.first_to_cut : jetty.works[before].next_to_cut) = work.next_to_cut;
  if (flow.last_to_cut == lease) flow.last_to_cut = before;
  work.in_line = false;
}

// Ends the works in line: all of them, or only the cancelled ones.
void Initiator::clear_line(Flow& flow, SliceEvent event, bool only_cancelled, Time now) {
  if (flow.jetty == Flow::none) return;
  Jetty& jetty = jetties_.at(flow.jetty);
  uint16_t lease = flow.first_to_cut;
  flow.first_to_cut = flow.last_to_cut = Queues::none;
  while (lease != Queues::none) {
    WorkState& work = jetty.works[lease];
    const uint16_t next = work.next_to_cut;
    work.in_line = false;
    if (only_cancelled && !work.cancelled) {
      put_in_line(flow, jetty, lease, false);
    } else {
      const bool asked = event == SliceEvent::cancel;
      const SliceEvent end = asked ? cancellation(flow, work, SliceState::held) : event;
      give_up_rest(jetty, lease, step(SliceState::held, end, false).status, now);
    }
    lease = next;
  }
}

// Cancels the part of a work that is not cut. The work ends when its open slices have ended.
void Initiator::give_up_rest(Jetty& jetty, uint16_t lease, Status status, Time now) {
  WorkState& work = jetty.works[lease];
  work.cut = true;
  work.status = combine(work.status, status);
  if (work.open_slices == 0) finish(jetty, lease, work.status, false, now);
}

void Initiator::slice_ended(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now) {
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
    if (work.in_line) take_out_of_line(flows_.at(work.flow), jetty, lease);
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
    if (!work.in_line) put_in_line(flow, jetty, lease, true);
    return;
  }
  finish(jetty, lease, work.status, answered, now);
}

void Initiator::finish(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now) {
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
    left_gate(jetty, lease);

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

// The berths of completed unsignalled works are given back with the next completion.
void Initiator::show(Jetty& jetty, uint16_t lease, Status status) {
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

}  // namespace urma::jetty
