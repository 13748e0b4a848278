// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp_ingress.h"

#include "base/probes.h"
#include "wire/icrc.h"

namespace urma::transport {

void RtpIngress::receive(std::span<const RxFrame> frames, Time now) {
  latest_ = {};
  for (const RxFrame& frame : frames) take(frame, now);
}

void RtpIngress::take(const RxFrame& frame, Time now) {
  const std::span<const std::byte> packet(frame.data, frame.bytes);
  if (packet.size() < Rtph::size + icrc_bytes || packet.size() % 4 != 0) {
    return ignore(counters_.malformed);
  }
  if (!verify(packet, *frame.from, own_paths_.endpoint(frame.path), prefix_)) {
    return ignore(counters_.bad_icrc);
  }
  ++counters_.received;
  probes::receive(frame.bytes, frame.path);
  const auto body = packet.first(packet.size() - icrc_bytes);
  const auto header = Rtph::parse(body.first<Rtph::size>());
  if (!header) return ignore(counters_.malformed);
  if (latest_.channel != nullptr && latest_.sends(*header, frame)) {
    return take_for(*latest_.channel, *header, body.subspan(Rtph::size), frame, now);
  }
  if (header->opcode != static_cast<uint8_t>(TpOpcode::unreliable)) {
    return take_for_channel(*header, body.subspan(Rtph::size), frame, now);
  }
  if (datagrams_.are(body)) return take_datagram(body, frame, now);
  // A set-up message may end channels.
  latest_ = {};
  setup_.handle(body, *frame.from, frame.path, now);
}

void RtpIngress::take_datagram(std::span<const std::byte> packet, const RxFrame& frame, Time now) {
  const auto utph = Utph::parse(packet.first<Utph::size>());
  const bool known = utph && utph->next == NextHeader::full_addresses;
  if (!known || packet.size() < Utph::size + Addresses::size + utph->padding) {
    return ignore(counters_.malformed);
  }
  packet = packet.first(packet.size() - utph->padding);
  Received datagram;
  const bool ours = datagrams_.parse(packet, packet, *frame.from, datagram);
  if (ours && sink_.admits(datagram)) sink_.accept(datagram, now);
}

void RtpIngress::take_for_channel(const Rtph& header, std::span<const std::byte> rest,
                                  const RxFrame& frame, Time now) {
  Tp* const tp = medium_.tp(tpns_.channel(header.destination));
  if (tp == nullptr) return answer_unknown(header, frame, now);
  if (!tp->routes().came_from(frame, tp->to(), now) || number(tp->remote()) != header.source) {
    return ignore(counters_.wrong_source);
  }
  if (header.next != NextHeader::transaction || rest.size() < header.padding) {
    return ignore(counters_.malformed);
  }
  links_.note_heard(*tp);
  medium_.wake(*tp);
  // Each packet shows over which of several routes it has come.
  if (!tp->routes().several()) {
    latest_ = {
        .channel = tp, .source = header.source, .destination = header.destination, .frame = &frame};
  }
  take_for(*tp, header, rest, frame, now);
}

// The packet is one of this channel.
void RtpIngress::take_for(Tp& tp, const Rtph& header, std::span<const std::byte> rest,
                          const RxFrame& frame, Time now) {
  if (rest.size() < header.padding) return ignore(counters_.malformed);
  rest = rest.first(rest.size() - header.padding);
  switch (static_cast<TpOpcode>(header.opcode)) {
    case TpOpcode::data:
      return take_data(tp, header, rest, frame, now);
    case TpOpcode::ack_cc:
    case TpOpcode::selective_ack_cc:
      if (!tp.reports_taken().in_acknowledgements()) return ignore(counters_.malformed);
      [[fallthrough]];
    case TpOpcode::ack:
    case TpOpcode::selective_ack:
      tp.handle_ack(header, rest, frame, now, sink_);
      if (tp.routes().any_news()) links_.report_paths(*peers_.find(tp.peer()));
      return;
    case TpOpcode::congestion:
      return tp.handle_notification(rest, frame, now);
    default:
      return ignore(counters_.malformed);
  }
}

// Answers data for an unknown channel with a RESET, except for a channel that is being made, which
// will soon be known.
void RtpIngress::answer_unknown(const Rtph& header, const RxFrame& frame, Time now) {
  ++counters_.unknown_channel;
  const bool promised = tpns_.channel(header.destination) != Tpns::none;
  if (promised || header.opcode != static_cast<uint8_t>(TpOpcode::data)) return;
  SetupMessage reset;
  reset.from_tpn = header.destination;
  reset.to_tpn = header.source;
  reset.echoed_psn = header.psn;
  setup_.outbox().reset(reset, *frame.from, frame.path, now);
}

void RtpIngress::take_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest,
                           const RxFrame& frame, Time now) {
  // A keep-alive is filler without a BTAH: it has served its purpose once it is received.
  const bool keep_alive = header.fake && rest.empty();
  const bool fresh = tp.is_fresh(header);
  // The fast path of most messages.
  if (fresh && header.last && !header.fake && sink_.accept_expected(tp.peer(), rest, now)) {
    tp.handle_data(header, frame, now);
    return;
  }
  const Received packet{.peer = tp.peer(),
                        .channel = tp.index(),
                        .slice = header.tpmsn,
                        .last = header.last,
                        .in_order = tp.in_order(header),
                        .withdrawn = header.fake,
                        .head = rest,
                        .bytes = rest};
  if (fresh && !header.fake && sink_.accept_next(packet)) {
    tp.handle_data(header, frame, now);
    return;
  }
  // A duplicate is acknowledged again, whether or not there is room.
  if (fresh && !keep_alive && !sink_.admits(packet)) return ignore(counters_.no_memory);
  if (tp.handle_data(header, frame, now) && !keep_alive) sink_.accept(packet, now);
}

}  // namespace urma::transport
