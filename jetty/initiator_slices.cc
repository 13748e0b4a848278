// Slices on their way: cut, offered, written, settled; and what a channel's life means to them.

#include <algorithm>
#include <utility>

#include "jetty/initiator.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

// What a flow may have in its channel's line, so that flows take turns: two full slices, or 64
// small ones.
constexpr uint32_t most_offered_cost = 2 * slice_bytes;
constexpr uint32_t least_slice_cost = most_offered_cost / 64;
constexpr Duration longest_receiver_wait = std::chrono::milliseconds(1);

uint32_t cost_of(const Slice& slice) { return std::max(slice.bytes, least_slice_cost); }

}  // namespace

// ---- cutting and offering

void Initiator::activate(Flow& flow) { active_.add(index_of(flow)); }

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
  for (uint32_t turns = active_.size(); turns > 0 && budget > 0; --turns) {
    Flow& flow = flows_.at(active_.take());
    if (flow.peer_over) {
      if (flow.first_slice == Slice::none) retire(flow);
      continue;
    }
    PeerState& peer = peers_.at(flow.peer);
    // Made by this call, or later: `up` brings the flow back.
    if (peer.channel == nullptr) channels_.channel(flow.peer, now);
    if (peer.channel == nullptr) continue;
    if (flow.to_reoffer) reoffer(flow, peer, now);
    if (flow.jetty == Flow::none) continue;
    Jetty& jetty = jetties_.at(flow.jetty);
    Cut result = Cut::done;
    while (budget > 0 && flow.first_to_cut != Queues::none && result == Cut::done) {
      result = cut_one(flow, jetty, flow.first_to_cut, peer, now);
      --budget;
      any = any || result == Cut::done;
    }
    // A blocked flow is brought back by what blocks it.
    if (flow.first_to_cut != Queues::none && result != Cut::blocked) activate(flow);
  }
  return any;
}

// Of a work that is next: in line, or about to be.
Initiator::Cut Initiator::cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer,
                                  Time now) {
  const Berth& berth = jetty.queues->berth(lease);
  WorkState& work = jetty.works[lease];
  const uint32_t bytes = std::min(berth.bytes - work.cut_bytes, slice_bytes);
  const bool last = work.cut_bytes + bytes == berth.bytes;
  const bool tells = berth.with_immediate || berth.with_notify;
  if (berth.operation == Operation::write && tells && last && work.open_slices > 0) {
    // What it tells may not overtake the data; the works behind may.
    take_out_of_line(flow, jetty, lease);
    return Cut::done;
  }
  const transport::Facts& facts = peer.facts;
  if (flow.offered_cost >= most_offered_cost || !window_open(flow, peer)) return Cut::blocked;
  if (berth.operation == Operation::read && peer.reads_out >= facts.reads) return Cut::blocked;

  Slice* slice = slices_.create();
  if (slice == nullptr) return Cut::no_memory;
  slice->flow = index_of(flow);
  slice->tassn = flow.next_tassn;
  slice->offset = work.cut_bytes;
  slice->bytes = bytes;
  slice->berth = lease;
  slice->last = last;
  if (!send_at_once(*slice, flow, jetty, peer, now) && !offer(*slice, flow, peer, now)) {
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
  if (last && work.in_line) take_out_of_line(flow, jetty, lease);
  return Cut::done;
}

bool Initiator::window_open(const Flow& flow, const PeerState& peer) {
  return flow.first_slice == Slice::none ||
         flow.next_tassn - slices_.at(flow.first_slice).tassn < peer.facts.tassn_window;
}

// What is checked here is what `cut_one` would check: it must come to the same.
bool Initiator::send_ahead(Jetty& jetty) {
  Queues& queues = *jetty.queues;
  if (queues.berths().waiting() == 0 || jetty.first_flow == Flow::none) return false;
  const uint16_t lease = queues.berths().next_posted();
  const Berth& berth = queues.berth(lease);
  const Flow& flow = flows_.at(jetty.first_flow);
  if (!(flow.peer == berth.peer) || flow.peer_over || flow.first_to_cut != Queues::none ||
      flow.to_reoffer || flow.offered_cost > 0 || jetty.state != JettyState::ready ||
      berth.verdict != Status::ok || berth.operation == Operation::read || slices_.full()) {
    return false;
  }
  const PeerState& peer = peers_.at(flow.peer);
  if (peer.channel == nullptr || !window_open(flow, peer)) return false;
  Slice slice;
  slice.tassn = flow.next_tassn;
  slice.bytes = berth.bytes;
  slice.berth = lease;
  slice.last = true;
  if (!write_at_once(slice, flow, queues, peer)) return false;
  sent_ahead_ = lease;
  return true;
}

// Past the channel's queue, when nothing waits there.
bool Initiator::send_at_once(Slice& slice, const Flow& flow, const Jetty& jetty, PeerState& peer,
                             Time now) {
  const bool sent = slice.berth == std::exchange(sent_ahead_, Queues::none);
  if (!sent && !write_at_once(slice, flow, *jetty.queues, peer)) return false;
  slice.serial = next_serial_++;
  slice.state = step(SliceState::offered, SliceEvent::pulled, false).state;
  slice.expected = true;
  peer.channel->expect_answers(1, now);
  if (jetty.queues->berth(slice.berth).operation == Operation::read) ++peer.reads_out;
  return true;
}

// What lasts longer takes its turn.
bool Initiator::write_at_once(const Slice& slice, const Flow& flow, const Queues& queues,
                              const PeerState& peer) {
  const Berth& berth = queues.berth(slice.berth);
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  if (slice.bytes > std::min(transport::most_at_once, packet_bytes) &&
      berth.operation != Operation::read) {
    return false;
  }
  const SlicePacket packet{.berth = berth,
                           .notify = queues.notify(slice.berth),
                           .pieces = queues.pieces(slice.berth),
                           .slice = slice,
                           .rc_id = flow.rc_id,
                           .packet_bytes = packet_bytes,
                           .index = 0};
  const TaOpcode opcode = opcode_of(packet);
  const uint32_t bytes = whole_bytes(packet, opcode);
  std::byte* const to = peer.channel->begin(bytes);
  if (to == nullptr) return false;
  write_whole(packet, opcode, {to, bytes});
  peer.channel->end();
  return true;
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
  if (slice.last_written > handed_) return true;
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
  if (peer.reads_out-- < peer.facts.reads) return;
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
  const uint32_t packet_bytes = peers_.at(flow.peer).facts.packet_bytes;
  write_packet({.berth = queues.berth(slice->berth),
                .notify = queues.notify(slice->berth),
                .pieces = queues.pieces(slice->berth),
                .slice = *slice,
                .rc_id = flow.rc_id,
                .packet_bytes = packet_bytes,
                .index = packet.index},
               *packet.frame);
  const bool read = queues.berth(slice->berth).operation == Operation::read;
  if (read || packet.index + 1u == transport::packets_of(slice->bytes, packet_bytes))
    leave_offer(*slice);
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

}  // namespace urma::jetty
