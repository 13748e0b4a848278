// Messages that are not answered (UB: UNO). Their sender need not be a known peer.

#include <algorithm>

#include "jetty/target/target.h"

namespace urma::jetty {

void Target::handle_datagram(const transport::Received& packet, Time now) {
  MessageHeaders headers;
  const bool understood = headers.assign(packet.head) && headers.offset.kib == 0 &&
                          headers.base.order == Order::none && !headers.base.allocate &&
                          !headers.base.in_context;
  const auto data = packet.bytes.subspan(understood ? headers.bytes : 0);
  if (!understood || data.size() > transport::most_datagram_bytes) {
    ++counters_.malformed;
    return;
  }
  const PeerState* const peer = packet.peer ? &peers_.at(packet.peer) : nullptr;
  if (now < (peer != nullptr ? std::max(peer->ignored_until, peer->datagrams_ignored_until)
                             : unknown_peers_ignored_until_)) {
    ++counters_.ignored;
    return;
  }
  if (executor_.deliver(headers, data, packet.peer)) {
    ++counters_.datagrams;
    return;
  }
  deliver_slowly(packet, headers, data, now);
}

// Delivers a message to a JFR, or into several buffers, or drops it.
void Target::deliver_slowly(const transport::Received& packet, const MessageHeaders& headers,
                            std::span<const std::byte> data, Time now) {
  ParsedRequest request{.headers = {}, .info = find_opcode(headers.base.opcode), .data = data};
  request.headers.base = headers.base;
  request.headers.target = headers.target;
  request.headers.immediate = headers.immediate;
  request.headers.token = headers.token;
  Assembly assembly{.peer = packet.peer,
                    .rc_id = headers.base.rc_id,
                    .info = request.info,
                    .solicited = headers.base.solicited,
                    .bytes = static_cast<uint32_t>(data.size())};
  executor_.begin(assembly, request.headers);
  if (assembly.verdict == Verdict::run) executor_.place(assembly, request);
  switch (assembly.verdict) {
    case Verdict::run:
      executor_.finish(assembly, request.headers);
      ++counters_.datagrams;
      return;
    case Verdict::too_long:
      // The application gets a completion that reports that the message was too long.
      executor_.finish(assembly, request.headers);
      break;
    case Verdict::refuse:
    case Verdict::no_receives:
      complain_of_datagram(packet.peer, request.headers, *request.info, now);
      break;
    default:
      break;
  }
  ++counters_.datagrams_dropped;
}

// A datagram does not prove that it was sent by the peer it names, so the peer's channel is not
// ignored. Unknown senders, which name themselves, count as one.
void Target::complain_of_datagram(PeerId peer, const TaRequest& request, const OpcodeInfo& info,
                                  Time now) {
  if (!guessed(peer, request, info)) return;
  if (const auto until = datagram_guesses_.wrong(peer ? channels_.eid(peer) : Eid{}, now)) {
    (peer ? peers_.at(peer).datagrams_ignored_until : unknown_peers_ignored_until_) = *until;
    events_.raise({.kind = EventKind::guessing, .peer = peer});
  }
}

}  // namespace urma::jetty
