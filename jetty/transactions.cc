// SPDX-License-Identifier: Apache-2.0
#include "jetty/transactions.h"

#include <utility>

#include "jetty/channel_status.h"

namespace urma::jetty {

Transactions::Transactions(const Limits& limits, memseg::SegmentTable& segments,
                           transport::Channels& channels, EventSink& events, uint64_t seed)
    : events_(events),
      staging_(segments.guard()),
      jetties_(limits.jetties),
      peers_(limits.peers),
      initiator_({.jetties = limits.jetties, .flows = limits.flows, .slices = limits.slices},
                 jetties_, peers_, channels, staging_, seed),
      target_({.answers = limits.answers,
               .assemblies = limits.assemblies,
               .records = limits.records,
               .share = limits.share,
               .reads = limits.reads,
               .sequences = limits.sequences,
               .parked = limits.parked},
              peers_, segments, jetties_, groups_, channels, staging_, events) {}

void Transactions::write(std::span<transport::PacketSlot> packets) {
  while (!packets.empty()) {
    const transport::SliceRef slice = packets.front().slice;
    size_t count = 1;
    while (count < packets.size() && packets[count].slice == slice) ++count;
    const auto of_slice = packets.first(count);
    packets = packets.subspan(count);
    if (slice == transport::SliceRef{}) continue;  // the channel's own
    if (slice.slot & Answers::slot_flag) {
      for (transport::PacketSlot& packet : of_slice) target_.answers().write(packet);
    } else {
      initiator_.write(of_slice);
    }
  }
}

namespace {

const OpcodeInfo* opcode_of(const transport::Received& packet) {
  return packet.head.empty() ? nullptr : find_opcode(static_cast<uint8_t>(packet.head[0]));
}

// Extends the data that was parsed in a packet's head to all of its payload.
template <class Parsed>
void extend(Parsed& parsed, const transport::Received& packet) {
  parsed.data = packet.bytes.subspan(packet.head.size() - parsed.data.size());
}

}  // namespace

// Answers to our own works need no room, so they are always accepted.
bool Transactions::admits(const transport::Received& packet) {
  if (packet.datagram) [[unlikely]]
    return true;
  if (target_.admits(packet)) return true;
  const OpcodeInfo* info = packet.withdrawn ? nullptr : opcode_of(packet);
  return info != nullptr && !info->request;
}

void Transactions::accept(const transport::Received& packet, Time now) {
  if (packet.datagram) [[unlikely]]
    return target_.handle_datagram(packet, now);
  if (packet.withdrawn) return target_.handle_filler(packet, now);
  const OpcodeInfo* info = opcode_of(packet);
  if (info != nullptr && !info->request) {
    ParsedResponse response;
    if (parse_response(packet.head, response)) {
      extend(response, packet);
      return initiator_.handle_response(packet.peer, response, now);
    }
  } else {
    ParsedRequest request;
    if (parse_request(packet.head, request)) {
      extend(request, packet);
      return target_.handle_request(packet, request, now);
    }
  }
  target_.handle_malformed();
}

void Transactions::delivered(PeerId, std::span<const transport::SliceRef> slices, Time now) {
  for (const transport::SliceRef slice : slices) {
    if (slice == transport::SliceRef{}) continue;
    if (slice.slot & Answers::slot_flag) {
      target_.answers().delivered(slice);
    } else {
      initiator_.delivered(slice, now);
    }
  }
}

void Transactions::up(PeerId peer, transport::Channel& channel, Time now) {
  PeerState& state = peers_.at(peer);
  state.channel = &channel;
  state.facts = channel.facts();
  state.writes_at_once = channel.writes_at_once();
  if (std::exchange(state.lost, false)) events_.raise({.kind = EventKind::peer_back, .peer = peer});
  initiator_.up(state, now);
}

// Raises the event once, until the peer is back.
void Transactions::lose(PeerState& peer, Status why) {
  if (std::exchange(peer.lost, true)) return;
  events_.raise({.kind = EventKind::peer_lost, .status = why, .peer = peer.id});
}

void Transactions::silent(PeerId peer) { lose(peers_.at(peer), Status::timed_out); }

void Transactions::path(PeerId peer, uint8_t number, transport::PathIs now) {
  static constexpr EventKind kinds[] = {EventKind::path_lost, EventKind::path_back,
                                        EventKind::path_added, EventKind::path_removed};
  events_.raise({.kind = kinds[static_cast<size_t>(now)], .path = number, .peer = peer});
}

void Transactions::down(PeerId peer, transport::Why why, Time now) {
  using transport::Why;
  const bool over = ends_incarnation(why);
  PeerState* const state = peers_.find(peer);
  if (state == nullptr) return;
  if (over) {
    const bool left = why == Why::left;
    events_.raise({.kind = left ? EventKind::peer_left : EventKind::peer_restarted, .peer = peer});
  } else if (why != Why::idle) {
    lose(*state, status_of(why));
  }
  target_.down(*state, over);
  initiator_.down(*state, why, now);
  if (over) peers_.forget(peer);
}

}  // namespace urma::jetty
