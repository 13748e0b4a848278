// Cuts works into slices, sends these immediately or offers them, and writes their packets.

#include <algorithm>
#include <utility>

#include "jetty/initiator/initiator.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

// The cost that all flows together may have in a channel's queue: two full slices, or 64 small
// ones. Each flow may have its part of that, or one slice, so that flows take turns.
constexpr uint32_t most_offered_cost = 2 * slice_bytes;
constexpr uint32_t least_slice_cost = most_offered_cost / 64;
// The longest slice while another flow sends small works, which would have to wait for it.
constexpr uint32_t short_slice_bytes = shortest_cut_bytes;
constexpr Duration small_lasts = std::chrono::milliseconds(100);
// This many copied bytes count as one more slice.
constexpr uint32_t copied_like_one = 4096;

uint32_t cost_of(const Slice& slice) { return std::max(slice.bytes, least_slice_cost); }

}  // namespace

void Initiator::activate(Flow& flow) { active_.add(index_of(flow)); }

// Destroys a flow that has no slice left, after its peer's incarnation has ended.
void Initiator::retire(Flow& flow) {
  URMA_ASSERT(flow.first_to_cut == Queues::none, "a work in line ends with the peer");
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
  bool any = to_release_.size() > 0 && release(now);
  for (uint32_t turns = active_.size(); turns > 0 && budget > 0; --turns) {
    Flow& flow = flows_.at(active_.take());
    if (flow.peer_over) {
      if (flow.first_slice == Slice::none) retire(flow);
      continue;
    }
    PeerState& peer = peers_.at(flow.peer);
    // Asks for a channel. It may be made later: then `up` activates the flow.
    if (peer.channel == nullptr) channels_.channel(flow.peer, now);
    if (peer.channel == nullptr) continue;
    if (flow.to_reoffer) reoffer(flow, peer, now);
    if (flow.jetty == Flow::none) continue;
    Jetty& jetty = jetties_.at(flow.jetty);
    Cut result = Cut::done;
    while (budget > 0 && flow.first_to_cut != Queues::none && result == Cut::done) {
      const uint64_t before = counters_.copied_bytes;
      result = cut_one(flow, jetty, flow.first_to_cut, peer, now);
      const uint64_t cost = 1 + (counters_.copied_bytes - before) / copied_like_one;
      budget -= static_cast<uint32_t>(std::min<uint64_t>(cost, budget));
      any = any || result == Cut::done;
    }
    // The event that ends the blocking activates the flow again.
    if (flow.first_to_cut != Queues::none && result != Cut::blocked) activate(flow);
  }
  return any;
}

// Cuts the next slice of a work that is first in line, or about to be.
Initiator::Cut Initiator::cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer,
                                  Time now) {
  WorkState& work = jetty.works[lease];
  Jfs& jfs = jetty.queues->jfs();
  const Ahead ahead =
      lease == ahead_.lease
          ? std::exchange(ahead_, Ahead{})
          : Ahead{.copied = copier_.copy(flow, jfs, lease, work.cut_bytes, *peer.channel)};
  if (copied(jetty, lease, ahead.copied, now)) return Cut::done;
  const bool sent = ahead.sent || (work.open_slices == 0 &&
                                   write_at_once(flow, jetty, lease, work.cut_bytes, peer));
  if (!sent) return cut_slice(flow, jetty, lease, peer, now);
  const Berth& berth = jfs.berth(lease);
  Slice& slice = *slices_.create();
  slice.offset = work.cut_bytes;
  slice.bytes = berth.bytes - work.cut_bytes;
  slice.berth = lease;
  slice.last = true;
  slice.serial = next_serial_++;
  slice.state = step(SliceState::offered, SliceEvent::pulled, false).state;
  slice.expected = true;
  if (berth.order != Order::none) slice.asks = asks_sequence(flow, jetty, berth);
  peer.channel->expect_answers(1, now);
  if (berth.operation == Operation::read) ++peer.reads_out;
  append(flow, slice, jetty, work);
  if (berth.operation == Operation::atomic) [[unlikely]]
    note_atomic(flow, slice);
  return Cut::done;
}

// The first ordered slice to a target asks for a sequence context.
bool Initiator::asks_sequence(const Flow& flow, const Jetty& jetty, const Berth& berth) {
  return berth.order != Order::none && flow.sequence == Sequence::none &&
         jetty.ordering.mode != ServiceMode::initiator && peers_.at(flow.peer).facts.sequences;
}

// Records copied bytes. Returns false if a slice must still be sent, perhaps only to notify the
// target.
bool Initiator::copied(Jetty& jetty, uint16_t lease, uint32_t bytes, Time now) {
  if (bytes == 0) return false;
  const Berth& berth = jetty.queues->jfs().berth(lease);
  WorkState& work = jetty.works[lease];
  work.cut_bytes += bytes;
  work.progress = now;
  work.executed = true;
  if (berth.operation == Operation::atomic && berth.doubtful) work.status = Status::unknown;
  if (work.cut_bytes < berth.bytes) return true;
  if (notifies(berth)) return false;
  work.cut = true;
  if (work.in_line) take_out_of_line(flows_.at(work.flow), jetty, lease);
  if (work.open_slices == 0) finish(jetty, lease, work.status, false, now);
  return true;
}

// Returns the cost that the flow may have in the channel's queue, given the other flows there.
uint32_t Initiator::part_of_offer(const Flow& flow, const Jetty& jetty, const PeerState& peer,
                                  uint32_t slice) {
  const uint32_t weight = jetty.ordering.weight;
  const uint32_t all = peer.offering + (flow.offering == 0 ? weight : 0u);
  if (all == weight) return most_offered_cost;
  return std::max(most_offered_cost / all, slice) * weight;
}

// Offers the next slice to the channel, where packets take turns.
Initiator::Cut Initiator::cut_slice(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer,
                                    Time now) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  WorkState& work = jetty.works[lease];
  const bool beside_small = now < peer.small_until && peer.small_flow != index_of(flow);
  const uint32_t longest =
      beside_small && berth.operation != Operation::send ? short_slice_bytes : slice_bytes;
  const uint32_t bytes = std::min(berth.bytes - work.cut_bytes, longest);
  const bool last = work.cut_bytes + bytes == berth.bytes;
  if (berth.operation == Operation::write && notifies(berth) && last && work.open_slices > 0) {
    // The notification must not overtake the data; works behind this one may proceed.
    take_out_of_line(flow, jetty, lease);
    return Cut::done;
  }
  if (peer.channel->silent()) return Cut::blocked;
  const transport::Facts& facts = peer.facts;
  const uint32_t most_offered =
      beside_small ? 2 * short_slice_bytes : part_of_offer(flow, jetty, peer, bytes);
  if (flow.offered_cost >= most_offered || !window_open(flow, peer)) return Cut::blocked;
  if (berth.operation == Operation::read && peer.reads_out >= facts.reads) return Cut::blocked;
  if (berth.operation == Operation::atomic && facts.atomic_results == 0) {
    // The peer's version has no atomics.
    if (work.in_line) take_out_of_line(flow, jetty, lease);
    give_up_rest(jetty, lease, Status::remote_unsupported, now);
    return Cut::done;
  }
  if (keeps_result(berth) && !results_open(flow, peer)) return Cut::blocked;

  Slice* slice = slices_.create();
  if (slice == nullptr) return Cut::no_memory;
  slice->flow = index_of(flow);
  slice->offset = work.cut_bytes;
  slice->bytes = bytes;
  slice->berth = lease;
  slice->last = last;
  slice->asks = asks_sequence(flow, jetty, berth);
  if (!offer(*slice, flow, peer, now)) {
    slices_.destroy(slice);
    return Cut::no_memory;
  }
  append(flow, *slice, jetty, work);
  if (berth.operation == Operation::atomic) [[unlikely]]
    note_atomic(flow, *slice);
  if (berth.bytes <= transport::most_at_once) {
    peer.small_flow = index_of(flow);
    peer.small_until = now + small_lasts;
  }
  return Cut::done;
}

// A TASSN is given when a channel has accepted the slice, not when it is cut.
void Initiator::append(Flow& flow, Slice& slice, Jetty& jetty, WorkState& work) {
  slice.flow = index_of(flow);
  slice.tassn = flow.next_tassn;
  ++flow.next_tassn;
  slice.previous = flow.last_slice;
  const uint32_t index = slices_.index_of(&slice);
  (flow.last_slice != Slice::none ? slices_.at(flow.last_slice).next : flow.first_slice) = index;
  flow.last_slice = index;
  if (slice.asks) flow.sequence = Sequence::asking;
  ++counters_.slices;
  ++work.open_slices;
  work.cut_bytes += slice.bytes;
  work.cut = slice.last;
  if (slice.last && work.in_line) take_out_of_line(flow, jetty, slice.berth);
}

bool Initiator::window_open(const Flow& flow, const PeerState& peer) {
  if (flow.sequence == Sequence::asking) return false;
  return flow.first_slice == Slice::none ||
         flow.next_tassn - slices_.at(flow.first_slice).tassn < peer.facts.tassn_window;
}

// The checks must agree with those of `take`.
bool Initiator::send_ahead(Jetty& jetty) {
  Queues& queues = *jetty.queues;
  if (queues.jfs().waiting() == 0 || jetty.first_flow == Flow::none) return false;
  const uint16_t lease = queues.jfs().next_posted();
  const Berth& berth = queues.jfs().berth(lease);
  Flow& flow = flows_.at(jetty.first_flow);
  if (!(flow.peer == berth.peer) || flow.peer_over || flow.first_to_cut != Queues::none ||
      flow.to_reoffer || jetty.state != JettyState::ready || berth.verdict != Status::ok ||
      jetty.gated || asks_order(berth)) {
    return false;
  }
  const PeerState& peer = peers_.at(flow.peer);
  if (peer.channel == nullptr || berth.bytes > transport::most_at_once) return false;
  const uint32_t copied = copier_.copy(flow, queues.jfs(), lease, 0, *peer.channel);
  const bool over = copied > 0 && !notifies(berth);
  const bool sent = !over && write_at_once(flow, jetty, lease, copied, peer);
  if (copied == 0 && !sent) return false;
  ahead_ = {.lease = lease, .copied = copied, .sent = sent};
  return true;
}

// Sends the rest of a work in one packet, past the channel's queue if that is empty. Longer works
// take their turn.
bool Initiator::write_at_once(const Flow& flow, const Jetty& jetty, uint16_t lease, uint32_t from,
                              const PeerState& peer) {
  const Queues& queues = *jetty.queues;
  const Berth& berth = queues.jfs().berth(lease);
  const uint32_t bytes = berth.bytes - from;
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  const bool read = berth.operation == Operation::read;
  const uint32_t most = read ? slice_bytes : std::min(transport::most_at_once, packet_bytes);
  if (bytes > most || (read && peer.reads_out >= peer.facts.reads) || slices_.full() ||
      !window_open(flow, peer)) {
    return false;
  }
  SlicePacket packet{.berth = berth,
                     .notify = queues.jfs().notify(lease),
                     .pieces = queues.jfs().pieces(lease),
                     .tassn = flow.next_tassn,
                     .offset = from,
                     .bytes = bytes,
                     .last = true,
                     .rc_id = flow.rc_id,
                     .packet_bytes = packet_bytes};
  if (berth.operation == Operation::atomic) [[unlikely]] {
    if (peer.facts.atomic_results == 0 || !results_open(flow, peer)) return false;
    packet.expected = queues.jfs().values(lease).expected;
  }
  if (berth.order != Order::none || flow.sequence == Sequence::kept) [[unlikely]] {
    put_order(packet, flow, jetty, lease);
  }
  return write_straight(packet, *peer.channel);
}

bool Initiator::is_read(const Slice& slice) {
  const Jetty& jetty = jetties_.at(flows_.at(slice.flow).jetty);
  return jetty.queues->jfs().berth(slice.berth).operation == Operation::read;
}

uint8_t Initiator::weight_of(const Flow& flow) {
  return flow.jetty == Flow::none ? uint8_t{1} : jetties_.at(flow.jetty).ordering.weight;
}

bool Initiator::offer(Slice& slice, Flow& flow, PeerState& peer, Time now) {
  const bool tombstone = slice.is_tombstone();
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
  if (flow.offering == 0) peer.offering += flow.offering = weight_of(flow);
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
  flow.offered_cost -= cost_of(slice);
  if (flow.offered_cost == 0) {
    if (PeerState* peer = peers_.find(flow.peer)) peer->offering -= flow.offering;
    flow.offering = 0;
  }
  if (flow.first_to_cut != Queues::none) activate(flow);
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
    packet.withdrawn = true;  // already answered: a repeated packet is sent without content
    return;
  }
  const Flow& flow = flows_.at(slice->flow);
  const bool wanted = !slice->is_tombstone() && slice->state != SliceState::withdrawing &&
                      slice->state != SliceState::settling;
  if (!wanted) {
    packet.withdrawn = true;
    // A packet that is written again may have arrived before, with its data.
    slice->reports_cancelled = slice->reports_cancelled || !packet.again;
    write_filler(slice->tassn, flow.rc_id, slice->retry, *packet.frame);
    leave_offer(*slice);
    return;
  }
  if (slice->state == SliceState::offered || slice->state == SliceState::reoffered) {
    slice->state = step(slice->state, SliceEvent::pulled, false).state;
  }
  slice->last_written = fill_;
  const Jetty& jetty = jetties_.at(flow.jetty);
  const Queues& queues = *jetty.queues;
  const uint32_t packet_bytes = peers_.at(flow.peer).facts.packet_bytes;
  const bool kept = flow.sequence == Sequence::kept;
  const bool atomic = queues.jfs().berth(slice->berth).operation == Operation::atomic;
  write_packet({.berth = queues.jfs().berth(slice->berth),
                .notify = queues.jfs().notify(slice->berth),
                .expected = atomic ? queues.jfs().values(slice->berth).expected : 0,
                .pieces = queues.jfs().pieces(slice->berth),
                .tassn = slice->tassn,
                .offset = slice->offset,
                .bytes = slice->bytes,
                .last = slice->last,
                .retry = slice->retry,
                .order = jetty.works[slice->berth].order,
                .allocate = slice->asks || (kept && only_tombstones(slice->previous)),
                .in_context = kept,
                .rc_id = flow.rc_id,
                .packet_bytes = packet_bytes,
                .index = packet.index},
               *packet.frame);
  const bool read = queues.jfs().berth(slice->berth).operation == Operation::read;
  if (read || packet.index + 1u == transport::packets_of(slice->bytes, packet_bytes))
    leave_offer(*slice);
}

}  // namespace urma::jetty
