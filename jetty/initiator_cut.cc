// From a work in line to packets: its slices are cut, sent at once or offered, and written.

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

uint32_t cost_of(const Slice& slice) { return std::max(slice.bytes, least_slice_cost); }

}  // namespace

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

}  // namespace urma::jetty
