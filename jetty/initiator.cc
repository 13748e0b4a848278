#include "jetty/initiator.h"

#include <algorithm>

#include "jetty/slicer.h"
#include "urma/base/assert.h"

namespace urma::jetty {
namespace {

// What a flow may have in its channel's line, so that flows take turns: two full slices, or 64
// small ones.
constexpr uint32_t most_offered_cost = 2 * slice_bytes;
constexpr uint32_t least_slice_cost = most_offered_cost / 64;
// A cancelled work is told after this long at the latest, whether its fate is known or not.
constexpr Duration withdrawal_limit = std::chrono::milliseconds(8);
constexpr Duration longest_receiver_wait = std::chrono::milliseconds(1);
constexpr size_t timers_at_a_time = 64;

uint32_t cost_of(const Slice& slice) { return std::max(slice.bytes, least_slice_cost); }

bool claims_not_executed(Status status) {
  return status == Status::flushed || status == Status::peer_unreachable ||
         status == Status::peer_restarted || status == Status::receiver_not_ready ||
         status == Status::no_resources;
}

// What a work has come to when one more part of it ends. Uncertainty is never hidden by certainty.
Status combine(Status before, Status now) {
  if (now == Status::ok || before == Status::unknown) return before;
  return before == Status::ok || now == Status::unknown ? now : before;
}

Status status_of(const Atah& answer) {
  if (answer.status == Response::success) return Status::ok;
  switch (static_cast<CompleterError>(answer.info)) {
    case CompleterError::unsupported_request:
      return Status::remote_unsupported;
    case CompleterError::withdrawn:
      return Status::unknown;
    case CompleterError::no_room:
      return Status::no_resources;
    default:
      return Status::remote_access;
  }
}

// What a peer without a channel has said, if anything.
Status status_of(transport::Why why) {
  if (why == transport::Why::refused) return Status::version_mismatch;
  return why == transport::Why::no_room ? Status::no_resources : Status::peer_unreachable;
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
      settling_(limits.slices),
      jitter_(seed) {}

// ---- works

uint32_t Initiator::take(Jetty& jetty, uint32_t budget, Time now) {
  Leases& berths = jetty.queues->berths();
  const uint32_t count = std::min(budget, berths.waiting());
  for (uint32_t i = 0; i < count; ++i) {
    const uint16_t lease = berths.take_posted();
    const Berth& berth = jetty.queues->berth(lease);
    WorkState& work = jetty.works[lease] = {};
    work.progress = now;
    jetty.gate.posted(lease, berth.signalled);
    append(jetty, lease, now);
    ++counters_.works;
    Status refused = jetty.state == JettyState::ready ? berth.verdict : Status::flushed;
    Flow* flow = refused == Status::ok ? flow_for(jetty, berth.peer, refused) : nullptr;
    if (flow != nullptr) {
      put_in_line(*flow, jetty, lease, false);
    } else {
      finish(jetty, lease, refused, false, now);
    }
  }
  return count;
}

Flow* Initiator::flow_for(Jetty& jetty, PeerId peer, Status& why_not) {
  const uint64_t key = flow_key(peer, number(jetty.id));
  const uint32_t known = flows_by_key_.find(key);
  if (known != Flow::none && flows_.at(known).peer == peer &&
      flows_.at(known).jetty == jetties_.index_of(jetty)) {
    return &flows_.at(known);
  }
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

// Post order: what deadlines and completions go by.
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
  // A timer that is armed is early enough: when it fires it looks at the oldest work.
  const uint32_t timer = jetties_.index_of(jetty);
  if (!jetty_timers_.armed(timer)) jetty_timers_.arm(timer, now + jetty.timeouts.operation);
}

void Initiator::put_in_line(Flow& flow, Jetty& jetty, uint16_t lease, bool first) {
  WorkState& work = jetty.works[lease];
  work.flow = index_of(flow);
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

// Ends what is in line, all of it or what has been cancelled.
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
      const SliceEvent end = event == SliceEvent::cancel ? cancellation(flow, work) : event;
      give_up_rest(jetty, lease, step(SliceState::held, end, false).status, now);
    }
    lease = next;
  }
}

// Nothing more of this work is cut. It ends when its open slices have.
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
  if (work.status != Status::ok) {
    // Later parts of a work that has failed are not sent.
    if (work.in_line) take_out_of_line(flows_.at(work.flow), jetty, lease);
    work.cut = true;
  }
  if (work.open_slices > 0) return;
  if (!work.cut) {
    // The slice that carries the immediate has waited for all others.
    if (!work.in_line) put_in_line(flows_.at(work.flow), jetty, lease, true);
    return;
  }
  finish(jetty, lease, work.status, answered, now);
}

void Initiator::finish(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now) {
  WorkState& work = jetty.works[lease];
  const Berth& berth = jetty.queues->berth(lease);
  // Part of it was executed, so that all of it was not cannot be said.
  if (work.executed && claims_not_executed(status)) status = Status::unknown;
  if (status == Status::unknown) ++counters_.unknown;
  if (status == Status::peer_unreachable) status = status_of(channels_.why_not(berth.peer));
  if (answered) jetty.last_answer = now;

  (work.older != Queues::none ? jetty.works[work.older].newer : jetty.oldest) = work.newer;
  (work.newer != Queues::none ? jetty.works[work.newer].older : jetty.newest) = work.older;
  --jetty.outstanding;

  const bool failed = status != Status::ok;
  if (jetty.gate.done(lease, failed)) {
    show(jetty, lease, status);
  } else if (!berth.signalled) {
    jetty.queues->chain(lease, jetty.chained);
    jetty.chained = lease;
  }
  while (const auto released = jetty.gate.next_released()) show(jetty, *released, Status::ok);
}

// Unsignalled works that are done go home with the next completion.
void Initiator::show(Jetty& jetty, uint16_t lease, Status status) {
  const Berth& berth = jetty.queues->berth(lease);
  jetty.queues->chain(lease, jetty.chained);
  jetty.chained = Queues::none;
  jetties_.complete(jetty,
                    {.status = status,
                     .operation = berth.operation,
                     .with_immediate = berth.with_immediate,
                     .bytes = berth.bytes,
                     .tag = berth.tag,
                     .immediate = berth.immediate,
                     .from = {}},
                    lease);
}

// ---- cutting and offering

void Initiator::activate(Flow& flow) {
  if (flow.active) return;
  flow.active = true;
  active_[(active_first_ + active_count_++) % active_.size()] = index_of(flow);
}

// A flow goes when its peer has and nothing of it is left.
void Initiator::retire(Flow& flow) {
  const uint32_t index = index_of(flow);
  if (flow.jetty != Flow::none) {
    Jetty& jetty = jetties_.at(flow.jetty);
    uint32_t* link = &jetty.first_flow;
    while (*link != index) link = &flows_.at(*link).next_of_jetty;
    *link = flow.next_of_jetty;
  }
  flows_.destroy(&flow);
}

bool Initiator::cut(uint32_t budget, Time now) {
  bool any = false;
  for (uint32_t turns = active_count_; turns > 0 && budget > 0; --turns) {
    Flow& flow = flows_.at(active_[active_first_]);
    active_first_ = static_cast<uint32_t>((active_first_ + 1) % active_.size());
    --active_count_;
    flow.active = false;
    if (flow.peer_over) {
      if (flow.first_slice == Slice::none) retire(flow);
      continue;
    }
    PeerState& peer = peers_.at(flow.peer);
    // Made by this call, or later: `up` brings the flow back.
    if (peer.channel == nullptr) channels_.channel(flow.peer, now);
    if (peer.channel == nullptr) continue;
    reoffer(flow, peer, now);
    if (flow.jetty == Flow::none) continue;
    Jetty& jetty = jetties_.at(flow.jetty);
    Cut result = Cut::done;
    while (budget > 0 && flow.first_to_cut != Queues::none && result == Cut::done) {
      result = cut_one(flow, jetty, peer, now);
      --budget;
      any = any || result == Cut::done;
    }
    // A blocked flow is brought back by what blocks it.
    if (flow.first_to_cut != Queues::none && result != Cut::blocked) activate(flow);
  }
  return any;
}

Initiator::Cut Initiator::cut_one(Flow& flow, Jetty& jetty, PeerState& peer, Time now) {
  const uint16_t lease = flow.first_to_cut;
  const Berth& berth = jetty.queues->berth(lease);
  WorkState& work = jetty.works[lease];
  const uint32_t bytes = std::min(berth.bytes - work.cut_bytes, slice_bytes);
  const bool last = work.cut_bytes + bytes == berth.bytes;
  if (berth.operation == Operation::write && berth.with_immediate && last && work.open_slices > 0) {
    // The immediate may not overtake the data; the works behind may.
    take_out_of_line(flow, jetty, lease);
    return Cut::done;
  }
  const transport::Facts& facts = peer.channel->facts();
  if (flow.offered_cost >= most_offered_cost) return Cut::blocked;
  if (flow.first_slice != Slice::none &&
      flow.next_tassn - slices_.at(flow.first_slice).tassn >= facts.tassn_window) {
    return Cut::blocked;
  }
  if (berth.operation == Operation::read && peer.reads_out >= facts.reads) return Cut::blocked;

  Slice* slice = slices_.create();
  if (slice == nullptr) return Cut::no_memory;
  slice->flow = index_of(flow);
  slice->tassn = flow.next_tassn;
  slice->offset = work.cut_bytes;
  slice->bytes = bytes;
  slice->berth = lease;
  slice->last = last;
  if (!offer(*slice, flow, peer, now)) {
    slices_.destroy(slice);
    return Cut::no_memory;
  }
  // A TASSN is given when a channel has accepted the slice, not when it is cut.
  ++flow.next_tassn;
  ++counters_.slices;
  const uint32_t index = slices_.index_of(slice);
  slice->previous = flow.last_slice;
  (flow.last_slice != Slice::none ? slices_.at(flow.last_slice).next : flow.first_slice) = index;
  flow.last_slice = index;
  ++work.open_slices;
  work.cut_bytes += bytes;
  work.cut = last;
  if (last) take_out_of_line(flow, jetty, lease);
  return Cut::done;
}

bool Initiator::is_read(const Slice& slice) {
  const Jetty& jetty = jetties_.at(flows_.at(slice.flow).jetty);
  return jetty.queues->berth(slice.berth).operation == Operation::read;
}

bool Initiator::offer(Slice& slice, Flow& flow, PeerState& peer, Time now) {
  const bool tombstone = slice.berth == Queues::none;
  const bool read = !tombstone && is_read(slice);
  const uint32_t serial = next_serial_;
  const uint32_t payload = tombstone || read ? 0 : slice.bytes;
  if (!peer.channel->offer({slices_.index_of(&slice), serial}, transport::Class::request,
                           payload)) {
    return false;
  }
  ++next_serial_;
  slice.serial = serial;
  slice.in_offer = true;
  flow.offered_cost += cost_of(slice);
  if (!slice.expected && !tombstone) {
    slice.expected = true;
    peer.channel->expect_answers(1, now);
    if (read) ++peer.reads_out;
  }
  return true;
}

void Initiator::leave_offer(Slice& slice) {
  if (!slice.in_offer) return;
  slice.in_offer = false;
  Flow& flow = flows_.at(slice.flow);
  const bool was_blocked = flow.offered_cost >= most_offered_cost;
  flow.offered_cost -= cost_of(slice);
  if (was_blocked && flow.first_to_cut != Queues::none) activate(flow);
}

void Initiator::offer_later(Slice& slice) {
  Flow& flow = flows_.at(slice.flow);
  slice.waiting_to_offer = true;
  flow.to_reoffer = true;
  activate(flow);
}

void Initiator::reoffer(Flow& flow, PeerState& peer, Time now) {
  if (!flow.to_reoffer) return;
  flow.to_reoffer = false;
  for (uint32_t i = flow.first_slice; i != Slice::none; i = slices_.at(i).next) {
    Slice& slice = slices_.at(i);
    if (!slice.waiting_to_offer) continue;
    if (!offer(slice, flow, peer, now)) return offer_later(slice);
    slice.waiting_to_offer = false;
  }
}

// ---- how slices end

bool Initiator::in_device(const Slice& slice, SliceEvent event) const {
  if (slice.last_written <= settled_) return false;
  // What has arrived has left the device, unless there is a second copy of it.
  const bool arrived = event == SliceEvent::answered || event == SliceEvent::not_ready ||
                       event == SliceEvent::delivered || slice.state == SliceState::delivered ||
                       slice.state == SliceState::waiting;
  return !arrived || slice.written_again;
}

void Initiator::apply(Slice& slice, SliceEvent event, Time now, const Answer& answer) {
  const SliceState before = slice.state;
  const SliceStep next = step(before, event, in_device(slice, event));
  slice.state = next.state;
  switch (next.action) {
    case SliceAction::none:
      break;
    case SliceAction::wait:
      wait_for_receiver(slice, answer.timer, now);
      break;
    case SliceAction::offer_again:
      slice.retry = true;
      slice.placed = 0;
      ++counters_.retries;
      offer_later(slice);
      break;
    case SliceAction::offer:
      offer_later(slice);
      break;
  }
  if (next.decided) {
    slice.status = answer.given ? answer.status : next.status;
    slice.tombstone = next.tombstone;
    if (slice.state == SliceState::settling)
      settling_[settling_count_++] = slices_.index_of(&slice);
  }
  if (slice.state != SliceState::done || slice.berth == Queues::none) return;
  // The target knows this TASSN as not executed: it must hear that it never will be.
  const bool needs_filler =
      slice.tombstone && (before == SliceState::waiting || event == SliceEvent::not_ready);
  if (needs_filler) offer_later(slice);
  end(slice, now);
}

// The slice is done: its work is told, and it goes, or stays as a tombstone.
void Initiator::end(Slice& slice, Time now) {
  Flow& flow = flows_.at(slice.flow);
  Jetty& jetty = jetties_.at(flow.jetty);
  const uint16_t lease = slice.berth;
  const Status status = slice.status;
  stop_expecting(slice, now);
  slice_timers_.disarm(slices_.index_of(&slice));
  slice.berth = Queues::none;
  if (!slice.tombstone) erase(slice);
  const bool answered = !claims_not_executed(status) && status != Status::unknown;
  slice_ended(jetty, lease, status, answered, now);
}

void Initiator::stop_expecting(Slice& slice, Time now) {
  if (!slice.expected) return;
  slice.expected = false;
  Flow& flow = flows_.at(slice.flow);
  PeerState& peer = peers_.at(flow.peer);  // it is up: when it went down nothing stayed expected
  peer.channel->expect_answers(-1, now);
  if (!is_read(slice)) return;
  // Flows that wait for their turn to read.
  if (peer.reads_out-- < peer.channel->facts().reads) return;
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    if (flows_.at(i).first_to_cut != Queues::none) activate(flows_.at(i));
  }
}

void Initiator::erase(Slice& slice) {
  leave_offer(slice);
  Flow& flow = flows_.at(slice.flow);
  const bool oldest = slice.previous == Slice::none;
  (slice.previous != Slice::none ? slices_.at(slice.previous).next : flow.first_slice) = slice.next;
  (slice.next != Slice::none ? slices_.at(slice.next).previous : flow.last_slice) = slice.previous;
  slices_.destroy(&slice);
  // The window of TASSNs moves on.
  if (oldest && (flow.first_to_cut != Queues::none || flow.peer_over)) activate(flow);
}

void Initiator::wait_for_receiver(Slice& slice, uint8_t timer, Time now) {
  ++counters_.not_ready;
  Flow& flow = flows_.at(slice.flow);
  Jetty& jetty = jetties_.at(flow.jetty);
  jetty.works[slice.berth].progress = now;
  if (slice.not_ready_times == 0) slice.not_ready_since = now;
  if (now - slice.not_ready_since > jetty.timeouts.receiver) {
    return apply(slice, SliceEvent::too_long, now);
  }
  // What repeats packets of this attempt has nothing to say any more.
  slice.serial = next_serial_++;
  // Longer each time, and not in step with others who wait for the same receiver.
  const int64_t doubled = int64_t{2000} << std::min(timer + slice.not_ready_times, 20);
  const int64_t wait = std::min(doubled, longest_receiver_wait.count());
  if (slice.not_ready_times < UINT8_MAX) ++slice.not_ready_times;
  const auto jitter = static_cast<int64_t>(jitter_.below(static_cast<uint64_t>(wait) / 2));
  slice_timers_.arm(slices_.index_of(&slice), now + Duration(wait * 3 / 4 + jitter));
}

// ---- packets

Slice* Initiator::find(transport::SliceRef ref) {
  if (!slices_.live(ref.slot)) return nullptr;
  Slice& slice = slices_.at(ref.slot);
  return slice.serial == ref.generation ? &slice : nullptr;
}

void Initiator::write(transport::PacketSlot& packet) {
  Slice* slice = find(packet.slice);
  if (slice == nullptr) {
    packet.withdrawn = true;  // answered already: what is repeated need not say anything
    return;
  }
  const Flow& flow = flows_.at(slice->flow);
  const bool wanted = slice->berth != Queues::none && slice->state != SliceState::withdrawing &&
                      slice->state != SliceState::settling;
  if (!wanted) {
    packet.withdrawn = true;
    write_filler(slice->tassn, flow.rc_id, slice->retry, *packet.frame);
    leave_offer(*slice);
    return;
  }
  if (slice->state == SliceState::offered || slice->state == SliceState::reoffered) {
    slice->state = step(slice->state, SliceEvent::pulled, false).state;
  }
  slice->last_written = fill_;
  slice->written_again = slice->written_again || packet.again;
  const Queues& queues = *jetties_.at(flow.jetty).queues;
  const uint32_t packet_bytes = peers_.at(flow.peer).channel->facts().packet_bytes;
  write_packet({.berth = queues.berth(slice->berth),
                .pieces = queues.pieces(slice->berth),
                .slice = *slice,
                .rc_id = flow.rc_id,
                .packet_bytes = packet_bytes,
                .index = packet.index},
               *packet.frame);
  const bool read = queues.berth(slice->berth).operation == Operation::read;
  if (read || packet.index + 1u == packets_of(slice->bytes, packet_bytes)) leave_offer(*slice);
}

void Initiator::delivered(transport::SliceRef ref, Time now) {
  Slice* slice = find(ref);
  if (slice == nullptr || slice->berth == Queues::none) return;
  jetties_.at(flows_.at(slice->flow).jetty).works[slice->berth].progress = now;
  apply(*slice, SliceEvent::delivered, now);
}

void Initiator::settled(uint64_t fill, Time now) {
  settled_ = fill;
  for (uint32_t i = 0; i < settling_count_;) {
    Slice& slice = slices_.at(settling_[i]);
    if (slice.last_written > settled_) {
      ++i;
      continue;
    }
    settling_[i] = settling_[--settling_count_];
    apply(slice, SliceEvent::settled, now);
  }
}

// ---- answers

void Initiator::handle_response(PeerId peer, const ParsedResponse& response, Time now) {
  const uint32_t index = flows_by_key_.find(flow_key(peer, response.headers.base.rc_id));
  if (index == Flow::none || !(flows_.at(index).peer == peer)) {
    ++counters_.late_answers;
    return;
  }
  if (response.info->opcode == TaOpcode::read_response) {
    handle_read_response(flows_.at(index), response, now);
  } else {
    handle_answer(flows_.at(index), response.headers.base, now);
  }
}

Slice* Initiator::find(Flow& flow, Tassn tassn) {
  for (uint32_t i = flow.first_slice; i != Slice::none; i = slices_.at(i).next) {
    Slice& slice = slices_.at(i);
    if (slice.tassn >= tassn) return slice.tassn == tassn ? &slice : nullptr;
  }
  return nullptr;
}

void Initiator::handle_answer(Flow& flow, const Atah& answer, Time now) {
  const Tassn first = Tassn::unwrap(flow.next_tassn, answer.tassn);
  const bool success = answer.status == Response::success;
  const Tassn last = success ? first + answer.info : first;
  const bool not_ready =
      answer.status == Response::receiver_not_ready || answer.status == Response::page_fault;
  const bool known = success || not_ready || answer.status == Response::completer_error;
  if (!known || last >= flow.next_tassn) {
    ++counters_.malformed;
    return;
  }
  bool found = false;
  for (uint32_t i = flow.first_slice; i != Slice::none && slices_.at(i).tassn <= last;) {
    Slice& slice = slices_.at(i);
    i = slice.next;
    if (slice.tassn < first) continue;
    found = true;
    if (slice.berth == Queues::none) {
      // A tombstone has waited for this. "Not ready" says that more of it is to come.
      if (!not_ready) erase(slice);
    } else if (not_ready) {
      Answer wait;
      wait.timer = answer.info;
      apply(slice, SliceEvent::not_ready, now, wait);
    } else if (slice.state == SliceState::settling) {
      slice.tombstone = false;
    } else if (success && is_read(slice)) {
      ++counters_.malformed;  // a read is answered by its data
    } else {
      apply(slice, SliceEvent::answered, now, Answer(status_of(answer)));
    }
  }
  if (!found) ++counters_.late_answers;
}

void Initiator::handle_read_response(Flow& flow, const ParsedResponse& response, Time now) {
  Slice* slice = find(flow, Tassn::unwrap(flow.next_tassn, response.headers.base.tassn));
  if (slice == nullptr || slice->berth == Queues::none) {
    ++counters_.late_answers;
    if (slice != nullptr) erase(*slice);
    return;
  }
  Jetty& jetty = jetties_.at(flow.jetty);
  const Berth& berth = jetty.queues->berth(slice->berth);
  const uint64_t offset = uint64_t{response.headers.offset.kib} * 1024;
  const bool fits = berth.operation == Operation::read &&
                    offset + response.data.size() <= slice->bytes &&
                    slice->placed + response.data.size() <= slice->bytes;
  if (!fits || response.headers.base.status != Response::success ||
      (response.data.empty() && slice->bytes > 0)) {
    ++counters_.malformed;
    return;
  }
  // After a cancellation nothing is placed any more.
  if (slice->state != SliceState::sending && slice->state != SliceState::delivered) return;
  scatter(jetty.queues->pieces(slice->berth), static_cast<uint32_t>(slice->offset + offset),
          response.data);
  slice->placed += static_cast<uint32_t>(response.data.size());
  jetty.works[slice->berth].progress = now;
  if (slice->placed == slice->bytes) {
    apply(*slice, SliceEvent::answered, now, Answer(Status::ok));
  }
}

// ---- peers

void Initiator::up(PeerState& peer, Time now) {
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    Flow& flow = flows_.at(i);
    for (uint32_t s = flow.first_slice; s != Slice::none;) {
      Slice& slice = slices_.at(s);
      s = slice.next;
      apply(slice, SliceEvent::channel_back, now);
    }
    activate(flow);
  }
}

void Initiator::down(PeerState& peer, transport::Why why, Time now) {
  using transport::Why;
  const bool over = why == Why::restarted || why == Why::left;
  const bool unreachable = why == Why::unreachable || why == Why::refused || why == Why::no_room;
  const SliceEvent verdict = over ? SliceEvent::peer_over : SliceEvent::unreachable;
  peer.channel = nullptr;
  peer.reads_out = 0;
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    Flow& flow = flows_.at(i);
    for (uint32_t s = flow.first_slice; s != Slice::none;) {
      Slice& slice = slices_.at(s);
      s = slice.next;
      // With its channel the wait for a late answer ends, also of what is still settling.
      slice.expected = slice.waiting_to_offer = slice.tombstone = false;
      leave_offer(slice);
      if (slice.berth == Queues::none) {
        erase(slice);  // with its channel the wait for its answer ends
        continue;
      }
      slice_timers_.disarm(slices_.index_of(&slice));
      const uint32_t index = slices_.index_of(&slice);
      const uint32_t serial = slice.serial = next_serial_++;
      apply(slice, SliceEvent::channel_died, now);
      if (!over && !unreachable) continue;
      if (slices_.live(index) && slices_.at(index).serial == serial) {
        apply(slices_.at(index), verdict, now);
      }
    }
    if (over || unreachable) clear_line(flow, verdict, false, now);
    // Whoever still has works asks for a new channel; nobody else does, or refusals go in circles.
    const bool wanted = flow.first_slice != Slice::none || flow.first_to_cut != Queues::none;
    if (!over && wanted) activate(flow);
  }
  if (!over) return;
  for (uint32_t i = peer.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_peer;
    flows_by_key_.erase(flow_key(flow.peer, flow.rc_id));
    flow.next_of_peer = Flow::none;
    flow.peer_over = true;
    activate(flow);
  }
  peer.first_flow = Flow::none;
}

// ---- ends asked for

void Initiator::cancel(WorkState& work, Time now) {
  if (work.cancelled) return;
  work.cancelled = true;
  work.cancelled_at = now;
}

void Initiator::flush(Jetty& jetty, Time now) {
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    cancel(jetty.works[i], now);
  }
  sweep_jetty(jetty, now);
}

// Applies what has been noted in the works of a Jetty to their slices, in one walk.
void Initiator::sweep_jetty(Jetty& jetty, Time now) {
  for (uint16_t i = jetty.oldest; i != Queues::none;) {
    WorkState& work = jetty.works[i];
    const uint16_t lease = i;
    i = work.newer;
    // Between line and slices: its last slice waits for the others.
    if (work.cancelled && !work.cut && !work.in_line) {
      give_up_rest(jetty, lease, Status::flushed, now);
    }
  }
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    sweep(flow, now);
  }
  if (jetty.oldest != Queues::none) {
    jetty_timers_.arm(jetties_.index_of(jetty), now + withdrawal_limit);
  }
}

// What ends a cancelled work: that nobody answers, if it has waited for a channel all its time.
SliceEvent Initiator::cancellation(const Flow& flow, const WorkState& work) {
  const PeerState* peer = peers_.find(flow.peer);
  const bool no_channel = peer == nullptr || peer->channel == nullptr;
  return work.timed_out && no_channel ? SliceEvent::unreachable : SliceEvent::cancel;
}

void Initiator::sweep(Flow& flow, Time now) {
  Jetty& jetty = jetties_.at(flow.jetty);
  clear_line(flow, SliceEvent::cancel, true, now);
  for (uint32_t s = flow.first_slice; s != Slice::none;) {
    Slice& slice = slices_.at(s);
    s = slice.next;
    if (slice.berth == Queues::none) continue;
    const WorkState& work = jetty.works[slice.berth];
    if (work.overdue) {
      apply(slice, SliceEvent::overdue, now);
    } else if (work.cancelled) {
      apply(slice, cancellation(flow, work), now);
    }
  }
}

namespace {

bool overlaps(const Queues& queues, uint16_t lease, const std::byte* base, uint64_t bytes) {
  for (const Piece& piece : queues.pieces(lease)) {
    if (piece.data < base + bytes && base < piece.data + piece.bytes) return true;
  }
  return false;
}

}  // namespace

void Initiator::flush_memory(const std::byte* base, uint64_t bytes, Time now) {
  jetties_.for_each([&](Jetty& jetty) {
    bool any = false;
    for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
      if (!overlaps(*jetty.queues, i, base, bytes)) continue;
      cancel(jetty.works[i], now);
      any = true;
    }
    if (any) sweep_jetty(jetty, now);
  });
}

bool Initiator::using_memory(const std::byte* base, uint64_t bytes) {
  bool any = false;
  jetties_.for_each([&](Jetty& jetty) {
    for (uint16_t i = jetty.oldest; i != Queues::none && !any; i = jetty.works[i].newer) {
      any = overlaps(*jetty.queues, i, base, bytes);
    }
  });
  return any;
}

void Initiator::detach(Jetty& jetty) {
  URMA_ASSERT(jetty.outstanding == 0, "a Jetty goes when its works have ended");
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    flow.jetty = flow.next_of_jetty = Flow::none;
  }
  jetty.first_flow = Flow::none;
  jetty_timers_.disarm(jetties_.index_of(jetty));
}

// ---- time

void Initiator::handle_timers(Time now) {
  std::array<uint32_t, timers_at_a_time> due;
  const size_t slices = slice_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(slices)) {
    if (slices_.live(index)) apply(slices_.at(index), SliceEvent::due, now);
  }
  const size_t jetties = jetty_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(jetties)) {
    if (jetties_.live(index)) check_deadline(jetties_.at(index), now);
  }
}

Time Initiator::next_deadline() const {
  return std::min(jetty_timers_.next_deadline(), slice_timers_.next_deadline());
}

// When something of the work last happened. What its channel got acknowledged counts while packets
// of the work are among what is sent.
Time Initiator::progress_of(const Jetty& jetty, const WorkState& work) {
  Time progress = std::max(work.progress, jetty.last_answer);
  if (work.open_slices == 0) return progress;
  const Flow& flow = flows_.at(work.flow);
  const PeerState* peer = peers_.find(flow.peer);
  if (peer == nullptr || peer->channel == nullptr) return progress;
  for (uint32_t s = flow.first_slice; s != Slice::none; s = slices_.at(s).next) {
    const Slice& slice = slices_.at(s);
    if (slice.berth == Queues::none || &jetty.works[slice.berth] != &work) continue;
    if (slice.state == SliceState::sending) {
      return std::max(progress, peer->channel->last_progress());
    }
  }
  return progress;
}

// The deadline is the oldest work's; when its time is up it is cancelled, and a little later told
// whether or not its fate is known. Then the next one is the oldest.
void Initiator::check_deadline(Jetty& jetty, Time now) {
  Time next = never;
  bool changed = false;
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    WorkState& work = jetty.works[i];
    if (!work.cancelled) {
      const Time due = progress_of(jetty, work) + jetty.timeouts.operation;
      if (now < due) {
        next = std::min(next, due);
        break;
      }
      ++counters_.timeouts;
      cancel(work, now);
      work.timed_out = true;
      changed = true;
    } else if (!work.overdue && now >= work.cancelled_at + withdrawal_limit) {
      work.overdue = changed = true;
    }
    if (!work.overdue) next = std::min(next, work.cancelled_at + withdrawal_limit);
  }
  if (changed) sweep_jetty(jetty, now);
  if (jetty.oldest != Queues::none && next != never) {
    jetty_timers_.arm(jetties_.index_of(jetty), std::max(next, now + TimerWheel::tick));
  }
}

}  // namespace urma::jetty
