// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/cutter.h"

#include <algorithm>

#include "base/assert.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

// The longest slice while another flow sends small works, which would have to wait for it.
constexpr uint32_t short_slice_bytes = shortest_cut_bytes;
constexpr Duration small_lasts = std::chrono::milliseconds(100);

}  // namespace

Cutter::Cutter(const InitiatorCommon& common, const Uses& uses)
    : peers_(common.peers),
      channels_(common.channels),
      counters_(common.counters),
      flows_(uses.parts.flows),
      slices_(uses.parts.slices),
      offers_(uses.parts.offers),
      order_(uses.parts.order),
      works_(uses.parts.works),
      events_(uses.events),
      copier_(uses.copier),
      lights_(uses.lights),
      carried_(uses.carried),
      staging_(common.staging) {}

bool Cutter::cut(uint32_t budget, Time now) {
  bool any = false;
  for (uint32_t turns = flows_.active(); turns > 0 && budget > 0; --turns) {
    Flow& flow = flows_.take_active();
    if (flow.peer_over) {
      if (flow.first_slice == Slice::none && flow.carried == 0) flows_.retire(flow);
      continue;
    }
    PeerState& peer = peers_.at(flow.peer);
    // Asks for a channel. It may be made later: then `up` activates the flow.
    if (peer.channel == nullptr) channels_.channel(flow.peer, now);
    if (peer.channel == nullptr) continue;
    if (flow.to_reoffer) offers_.offer_delayed(flow, peer, now);
    if (flow.jetty == Flow::none) continue;
    Jetty& jetty = flows_.jetty_of(flow);
    // Their TASSNs are not the newest any more.
    if (flow.first_to_cut != Queues::none) lights_.record(jetty, now);
    Cut result = Cut::done;
    while (budget > 0 && flow.first_to_cut != Queues::none && result == Cut::done) {
      const uint64_t before = counters_.copied_bytes;
      result = cut_one(flow, jetty, flow.first_to_cut, peer, {}, now);
      const uint64_t cost = 1 + (counters_.copied_bytes - before) / copied_like_one;
      budget -= static_cast<uint32_t>(std::min<uint64_t>(cost, budget));
      any = any || result == Cut::done;
    }
    // The event that ends the blocking activates the flow again.
    if (flow.first_to_cut != Queues::none && result != Cut::blocked) flows_.activate(flow);
  }
  return any;
}

void Cutter::cut_first(Flow& flow, Jetty& jetty, uint16_t lease, const DoneAhead& done, Time now) {
  PeerState& peer = peers_.at(flow.peer);
  const bool small = jetty.queues->jfs().berth(lease).bytes <= transport::most_at_once;
  if (small && flow.first_to_cut == Queues::none && !flow.to_reoffer && peer.channel != nullptr) {
    cut_one(flow, jetty, lease, peer, done, now);
  } else {
    URMA_ASSERT(!done, "`cut_ahead` makes the same checks");
  }
}

// Cuts the next slice of a work that is first in line, or about to be.
Cutter::Cut Cutter::cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer,
                            const DoneAhead& done, Time now) {
  WorkState& work = jetty.works[lease];
  Jfs& jfs = jetty.queues->jfs();
  const uint32_t copied =
      done ? done.copied_bytes : copier_.copy(flow, jfs, lease, work.cut_bytes, *peer.channel);
  if (note_copied(jetty, lease, copied, now)) return Cut::done;
  if (!done.sent) {
    switch (carried_.begin(flow, jetty, lease, now)) {
      case CarriedSlices::Begun::none:
        break;
      case CarriedSlices::Begun::full:
        return Cut::blocked;
      case CarriedSlices::Begun::begun:
        return Cut::done;
    }
  }
  const bool sent = done.sent || (peer.writes_at_once && work.open_slices == 0 &&
                                  write_at_once(flow, jetty, lease, work.cut_bytes, peer));
  if (!sent) return cut_slice(flow, jetty, lease, peer, now);
  const Berth& berth = jfs.berth(lease);
  Slice& slice = *slices_.create();
  slice.offset = work.cut_bytes;
  slice.bytes = berth.bytes - work.cut_bytes;
  slice.berth = lease;
  slice.last = true;
  slice.state = step(SliceState::offered, SliceEvent::pulled, false).state;
  if (berth.order != Order::none) slice.asks = order_.asks_sequence(flow, jetty, berth);
  offers_.note_sent(slice, peer, berth.operation == Operation::read, now);
  append(flow, slice, jetty, work);
  if (berth.operation == Operation::atomic) [[unlikely]]
    slices_.note_atomic(flow, slice);
  return Cut::done;
}

// Records copied bytes. Returns false if a slice must still be sent, perhaps only to notify the
// target.
bool Cutter::note_copied(Jetty& jetty, uint16_t lease, uint32_t bytes, Time now) {
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
  if (work.in_line) flows_.take_out_of_line(flows_.at(work.flow), jetty, lease);
  if (work.open_slices == 0) works_.finish(jetty, lease, work.status, false, now);
  return true;
}

// Offers the next slice to the channel, where packets take turns.
Cutter::Cut Cutter::cut_slice(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, Time now) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  WorkState& work = jetty.works[lease];
  const bool beside_small = now < peer.small_until && peer.small_flow != flows_.index_of(flow);
  const uint32_t longest =
      beside_small && berth.operation != Operation::send ? short_slice_bytes : slice_bytes;
  const uint32_t bytes = std::min(berth.bytes - work.cut_bytes, longest);
  const bool last = work.cut_bytes + bytes == berth.bytes;
  if (berth.operation == Operation::write && notifies(berth) && last && work.open_slices > 0) {
    // The notification must not overtake the data; works behind this one may proceed.
    flows_.take_out_of_line(flow, jetty, lease);
    return Cut::done;
  }
  if (peer.channel->silent()) return Cut::blocked;
  const transport::Facts& facts = peer.facts;
  const uint32_t most_offered =
      beside_small ? 2 * short_slice_bytes : Offers::share_of(flow, jetty, peer, bytes);
  if (flow.offered_cost >= most_offered || !slices_.window_open(flow, peer)) return Cut::blocked;
  if (berth.operation == Operation::read && peer.reads_out >= facts.reads) return Cut::blocked;
  if (berth.operation == Operation::atomic && facts.atomic_results == 0) {
    // The peer's version has no atomics.
    if (work.in_line) flows_.take_out_of_line(flow, jetty, lease);
    works_.give_up_rest(jetty, lease, Status::remote_unsupported, now);
    return Cut::done;
  }
  if (keeps_result(berth) && !slices_.results_open(flow, peer)) return Cut::blocked;

  Slice* slice = slices_.create();
  if (slice == nullptr) return Cut::no_memory;
  slice->flow = flows_.index_of(flow);
  slice->offset = work.cut_bytes;
  slice->bytes = bytes;
  slice->berth = lease;
  slice->last = last;
  slice->asks = order_.asks_sequence(flow, jetty, berth);
  if (!offers_.offer(*slice, flow, peer, now)) {
    slices_.discard(*slice);
    return Cut::no_memory;
  }
  append(flow, *slice, jetty, work);
  if (berth.operation == Operation::atomic) [[unlikely]]
    slices_.note_atomic(flow, *slice);
  if (berth.bytes <= transport::most_at_once) {
    peer.small_flow = flows_.index_of(flow);
    peer.small_until = now + small_lasts;
  }
  return Cut::done;
}

void Cutter::append(Flow& flow, Slice& slice, Jetty& jetty, WorkState& work) {
  slices_.append(flow, slice);
  ++counters_.slices;
  ++work.open_slices;
  work.cut_bytes += slice.bytes;
  work.cut = slice.last;
  if (slice.last && work.in_line) flows_.take_out_of_line(flow, jetty, slice.berth);
}

// Returns the flow of the posted work that will be taken next, if `cut_first` would cut it at once.
inline Flow* Cutter::flow_ahead(const Jetty& jetty) {
  const Jfs& jfs = jetty.queues->jfs();
  if (jfs.waiting() == 0 || jetty.first_flow == Flow::none) return nullptr;
  const Berth& berth = jfs.berth(jfs.next_posted());
  Flow& flow = flows_.at(jetty.first_flow);
  const bool none_before = flow.first_to_cut == Queues::none && !flow.to_reoffer && !jetty.gated;
  const bool begins = flow.peer == berth.peer && !flow.peer_over && none_before &&
                      jetty.state == JettyState::ready && berth.verdict == Status::ok &&
                      !asks_order(berth) && berth.bytes <= transport::most_at_once;
  return begins && peers_.at(flow.peer).channel != nullptr ? &flow : nullptr;
}

DoneAhead Cutter::cut_ahead(const Jetty& jetty) {
  Flow* const flow = flow_ahead(jetty);
  if (flow == nullptr) return {};
  Jfs& jfs = jetty.queues->jfs();
  const uint16_t lease = jfs.next_posted();
  const PeerState& peer = peers_.at(flow->peer);
  const uint32_t copied = copier_.copy(*flow, jfs, lease, 0, *peer.channel);
  const bool over = copied > 0 && !notifies(jfs.berth(lease));
  return {.copied_bytes = copied,
          .sent = !over && write_at_once(*flow, jetty, lease, copied, peer)};
}

bool Cutter::send_light(const Jetty& jetty) {
  const Flow* const flow = flow_ahead(jetty);
  if (flow == nullptr) return false;
  const Jfs& jfs = jetty.queues->jfs();
  const uint16_t lease = jfs.next_posted();
  if (Copier::copies(jfs.berth(lease))) return false;
  return write_at_once(*flow, jetty, lease, 0, peers_.at(flow->peer));
}

// Sends the rest of a work in one packet, past the channel's queue if that is empty. Longer works
// take their turn.
bool Cutter::write_at_once(const Flow& flow, const Jetty& jetty, uint16_t lease, uint32_t from,
                           const PeerState& peer) {
  const Queues& queues = *jetty.queues;
  const Berth& berth = queues.jfs().berth(lease);
  const uint32_t bytes = berth.bytes - from;
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  if (berth.staged) [[unlikely]]
    return false;
  const bool plain = berth.order == Order::none && flow.sequence != Sequence::kept;
  if (berth.operation == Operation::send && plain) {
    if (bytes > std::min(transport::most_at_once, packet_bytes) || slices_.full() ||
        !slices_.window_open(flow, peer)) {
      return false;
    }
    return write_message(berth, queues.jfs().pieces(lease), flow.next_tassn, flow.rc_id,
                         *peer.channel);
  }
  const bool read = berth.operation == Operation::read;
  const uint32_t most = read ? slice_bytes : std::min(transport::most_at_once, packet_bytes);
  if (bytes > most || (read && peer.reads_out >= peer.facts.reads) || slices_.full() ||
      !slices_.window_open(flow, peer)) {
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
    if (peer.facts.atomic_results == 0 || !slices_.results_open(flow, peer)) return false;
    packet.expected = queues.jfs().values(lease).expected;
  }
  if (!plain) [[unlikely]] {
    put_order(packet, flow, jetty, lease);
  }
  return write_straight(packet, *peer.channel);
}

// Sets the order in the only packet of a slice that is about to be made.
void Cutter::put_order(SlicePacket& packet, const Flow& flow, const Jetty& jetty, uint16_t lease) {
  const Berth& berth = packet.berth;
  packet.in_context = flow.sequence == Sequence::kept;
  packet.allocate = packet.in_context ? slices_.only_tombstones(flow.last_slice)
                                      : order_.asks_sequence(flow, jetty, berth);
  if (berth.order != Order::none) packet.order = jetty.works[lease].order;
}

// ---- packets

void Cutter::write(std::span<transport::PacketSlot> packets) {
  Slice* slice = slices_.find(packets.front().slice);
  if (slice == nullptr) {
    // Already answered: repeated packets are sent without content.
    for (transport::PacketSlot& packet : packets) packet.withdrawn = true;
    return;
  }
  const bool wanted = !slice->is_tombstone() && slice->state != SliceState::withdrawing &&
                      slice->state != SliceState::settling;
  if (!wanted) return withdraw(*slice, packets);
  if (slice->state == SliceState::offered || slice->state == SliceState::reoffered) {
    slice->state = step(slice->state, SliceEvent::pulled, false).state;
  }
  events_.note_in_fill(*slice);
  const Flow& flow = flows_.at(slice->flow);
  const Jetty& jetty = flows_.jetty_of(flow);
  const Jfs& jfs = jetty.queues->jfs();
  const Berth& berth = jfs.berth(slice->berth);
  const uint32_t packet_bytes = peers_.at(flow.peer).facts.packet_bytes;
  const bool kept = flow.sequence == Sequence::kept;
  const bool atomic = berth.operation == Operation::atomic;
  SlicePacket next{.berth = berth,
                   .notify = jfs.notify(slice->berth),
                   .expected = atomic ? jfs.values(slice->berth).expected : 0,
                   .pieces = jfs.pieces(slice->berth),
                   .tassn = slice->tassn,
                   .offset = slice->offset,
                   .bytes = slice->bytes,
                   .last = slice->last,
                   .retry = slice->retry,
                   .order = jetty.works[slice->berth].order,
                   .allocate = slice->asks || (kept && slices_.only_tombstones(slice->previous)),
                   .in_context = kept,
                   .rc_id = flow.rc_id,
                   .packet_bytes = packet_bytes,
                   .index = packets.front().index};
  if (!stage(next)) return give_up(*slice, packets);
  write_packet(next, *packets.front().frame);
  // Only slices of several packets have a packet with a higher index: writes and sends, no atomics.
  const TxFrame* before = packets.front().frame;
  for (size_t i = 1; i < packets.size(); ++i) {
    const transport::PacketSlot& packet = packets[i];
    const bool follows = packet.index > next.index;
    next.index = packet.index;
    if (!stage(next)) return give_up(*slice, packets.subspan(i));
    follows ? write_further_packet(next, *before, *packet.frame)
            : write_packet(next, *packet.frame);
    before = packet.frame;
  }
  const bool read = berth.operation == Operation::read;
  if (read || next.index + 1u == transport::packets_of(slice->bytes, packet_bytes))
    offers_.leave(*slice);
}

// Copies the packet's data, if that lies in memory of an accelerator. Returns false if it cannot be
// copied.
inline bool Cutter::stage(SlicePacket& packet) {
  const uint32_t bytes = packet.berth.staged ? payload_of(packet) : 0;
  if (bytes == 0) [[likely]]
    return true;
  const uint32_t at = packet.index * packet.packet_bytes;
  const uint32_t rest = packet.berth.bytes - packet.offset - at - bytes;
  packet.staged = staging_.copy(packet.pieces, packet.offset + at, bytes, rest);
  return packet.staged != nullptr;
}

// The data of these packets cannot be copied.
void Cutter::give_up(Slice& slice, std::span<transport::PacketSlot> packets) {
  withdraw(slice, packets);
  works_.cannot_access(flows_.jetty_of(flows_.at(slice.flow)), slice.berth);
}

// Writes filler instead of the packets of a slice that was cancelled.
void Cutter::withdraw(Slice& slice, std::span<transport::PacketSlot> packets) {
  for (transport::PacketSlot& packet : packets) {
    packet.withdrawn = true;
    // A packet that is written again may have arrived before, with its data.
    slice.reports_cancelled = slice.reports_cancelled || !packet.again;
    write_filler(slice.tassn, flows_.at(slice.flow).rc_id, slice.retry, *packet.frame);
  }
  offers_.leave(slice);
}

}  // namespace urma::jetty
