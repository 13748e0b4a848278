#include "jetty/transactions.h"

namespace urma::jetty {

Transactions::Transactions(const Limits& limits, memseg::SegmentTable& segments,
                           transport::Channels& channels, uint64_t seed)
    : jetties_(limits.jetties),
      peers_(limits.peers),
      initiator_({.jetties = limits.jetties, .flows = limits.flows, .slices = limits.slices},
                 jetties_, peers_, channels, seed),
      target_({.answers = limits.answers,
               .assemblies = limits.assemblies,
               .records = limits.records,
               .share = limits.share,
               .reads = limits.reads},
              peers_, segments, jetties_) {}

void Transactions::write(std::span<transport::PacketSlot> packets) {
  for (transport::PacketSlot& packet : packets) {
    if (packet.slice == transport::SliceRef{}) continue;  // the channel's own
    if (packet.slice.slot & Answers::slot_flag) {
      target_.answers().write(packet);
    } else {
      initiator_.write(packet);
    }
  }
}

namespace {

const OpcodeInfo* opcode_of(const transport::Received& packet) {
  return packet.head.empty() ? nullptr : find_opcode(static_cast<uint8_t>(packet.head[0]));
}

// What was parsed of a packet's head, with all of its payload.
template <class Parsed>
void extend(Parsed& parsed, const transport::Received& packet) {
  parsed.data = packet.bytes.subspan(packet.head.size() - parsed.data.size());
}

}  // namespace

// Answers to our own works need no room: what somebody waits for always comes.
bool Transactions::admits(const transport::Received& packet, size_t waiting) {
  if (target_.admits(packet, waiting)) return true;
  const OpcodeInfo* info = packet.withdrawn ? nullptr : opcode_of(packet);
  return info != nullptr && !info->request;
}

void Transactions::accept(std::span<const transport::Received> packets, Time now) {
  for (const transport::Received& packet : packets) {
    if (target_.handle_at_once(packet, now)) continue;
    if (packet.withdrawn) {
      target_.handle_filler(packet, now);
      continue;
    }
    const OpcodeInfo* info = opcode_of(packet);
    if (info != nullptr && !info->request) {
      ParsedResponse response;
      if (parse_response(packet.head, response)) {
        extend(response, packet);
        initiator_.handle_response(packet.peer, response, now);
        continue;
      }
    } else {
      ParsedRequest request;
      if (parse_request(packet.head, request)) {
        extend(request, packet);
        target_.handle_request(packet, request, now);
        continue;
      }
    }
    target_.handle_malformed();
  }
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
  initiator_.up(state, now);
}

void Transactions::down(PeerId peer, transport::Why why, Time now) {
  const bool over = why == transport::Why::restarted || why == transport::Why::left;
  if (PeerState* state = peers_.find(peer)) {
    target_.down(*state, over);
    initiator_.down(*state, why, now);
  }
  if (over && peers_.find(peer) != nullptr) peers_.forget(peer);
}

}  // namespace urma::jetty
