// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/datagrams.h"

#include <algorithm>

namespace urma::jetty {

Datagrams::Outcome Datagrams::handle(const transport::Received& packet, Time now) {
  MessageHeaders headers;
  const bool understood = headers.assign(packet.head) && headers.offset.kib == 0 &&
                          headers.base.order == Order::none && !headers.base.allocate &&
                          !headers.base.in_context;
  const auto data = packet.bytes.subspan(understood ? headers.bytes : 0);
  if (!understood || data.size() > transport::most_datagram_bytes) return Outcome::malformed;
  if (ignores(packet.peer, now)) return Outcome::ignored;
  Jetty* const jetty = addressees_.jetty(headers.target, TokenValue(headers.token.token));
  const bool delivered = jetty != nullptr && !jetty->receives_from &&
                         executor_.deliver(*jetty, *jetty,
                                           {.from = packet.peer,
                                            .from_jetty = JettyId(headers.base.rc_id),
                                            .solicited = headers.base.solicited,
                                            .with_immediate = headers.with_immediate,
                                            .immediate = headers.immediate.immediate,
                                            .bytes = static_cast<uint32_t>(data.size())},
                                           data.data());
  if (delivered) return Outcome::delivered;
  return deliver_slowly(packet, headers, data, now);
}

bool Datagrams::ignores(PeerId from, Time now) const {
  if (!from) return now < unknown_peers_ignored_until_;
  const PeerState& peer = peers_.at(from);
  return now < std::max(peer.ignored_until, peer.datagrams_ignored_until);
}

void Datagrams::ignore(PeerId from, Time until) {
  (from ? peers_.at(from).datagrams_ignored_until : unknown_peers_ignored_until_) = until;
}

// Delivers a message to a JFR, or into several buffers, or drops it.
Datagrams::Outcome Datagrams::deliver_slowly(const transport::Received& packet,
                                             const MessageHeaders& headers,
                                             std::span<const std::byte> data, Time now) {
  using Verdict = Assembly::Verdict;
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
  // If the message was too long, the application gets a completion that reports it.
  if (assembly.verdict == Verdict::run || assembly.verdict == Verdict::too_long) {
    executor_.finish(assembly, request.headers);
  }
  switch (assembly.verdict) {
    case Verdict::run:
      return Outcome::delivered;
    case Verdict::refuse:
      if (assembly.missing) {
        assembly.give_back();
        break;
      }
      [[fallthrough]];
    case Verdict::no_receives:
      if (const auto until = refusals_.note(packet.peer, request.headers, *request.info, now)) {
        ignore(packet.peer, *until);
      }
      break;
    default:
      break;
  }
  return Outcome::dropped;
}

}  // namespace urma::jetty
