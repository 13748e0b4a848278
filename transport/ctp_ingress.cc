// SPDX-License-Identifier: Apache-2.0
#include "transport/ctp_ingress.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"
#include "base/probes.h"

namespace urma::transport {
namespace {

// Copies in a loop, because a string instruction would take longer than all other handling of the
// packet, and loads after it would wait for it.
void copy_head(std::byte* to, const std::byte* from, size_t bytes) {
  size_t at = 0;
  for (; at + 32 < bytes; at += 16) std::memcpy(to + at, from + at, 16);
  copy_bytes(to + at, from + at, bytes - at);
}

}  // namespace

void CtpIngress::receive(std::span<const RxFrame> frames, Time now) {
  for (const RxFrame& frame : frames) {
    ++counters_.received;
    probes::receive(frame.bytes, frame.path);
    if (!take_expected(frame, now)) take(frame, now);
  }
}

// The fast path of most packets: the layer above recognises the packet where it lies.
bool CtpIngress::take_expected(const RxFrame& frame, Time now) {
  Ctp* const channel = medium_.channel_from(*frame.from);
  if (channel == nullptr || !channel->heard() || frame.bytes <= Ctph::size) return false;
  const auto header = Ctph::parse(std::span(frame.data, frame.bytes).first<Ctph::size>());
  if (!header || header->opcode != Ctph::Opcode::packet ||
      header->next != NextHeader::transaction) {
    return false;
  }
  if (!sink_.accept_expected(channel->peer(),
                             std::span(frame.data, frame.bytes).subspan(Ctph::size), now)) {
    return false;
  }
  if (channel->handle_packet(now)) [[unlikely]]
    sink_.up(channel->peer(), *channel, now);
  return true;
}

void CtpIngress::take(const RxFrame& frame, Time now) {
  Head head;
  const size_t copied = std::min<size_t>(frame.bytes, head.size());
  copy_head(head.data(), frame.data, copied);
  const auto header =
      copied < Ctph::size ? std::nullopt : Ctph::parse(std::span(head).first<Ctph::size>());
  if (!header) return ignore(counters_.malformed);
  if (header->next == NextHeader::full_addresses) {
    return take_without_channel(std::span(head).first(copied), frame, now);
  }
  Ctp* const channel = medium_.channel_from(*frame.from);
  if (channel == nullptr) {
    ++counters_.unknown_channel;
    const bool data = header->opcode == Ctph::Opcode::packet;
    if (data) setup_.outbox().reset({}, *frame.from, frame.path, now);
    return;
  }
  if (header->next != NextHeader::transaction || header->opcode == Ctph::Opcode::congestion) {
    return ignore(counters_.malformed);
  }
  links_.note_heard(*channel);
  if (channel->handle_packet(now)) sink_.up(channel->peer(), *channel, now);
  const bool filler = header->opcode == Ctph::Opcode::filler;
  if (filler && frame.bytes == Ctph::size) return;  // a keep-alive
  const Received packet{.peer = channel->peer(),
                        .channel = channel->index(),
                        .slice = channel->name_slice(),
                        .last = true,
                        .in_order = true,
                        .withdrawn = filler,
                        .head = std::span<const std::byte>(head).first(copied).subspan(Ctph::size),
                        .bytes = std::span(frame.data, frame.bytes).subspan(Ctph::size)};
  if (sink_.admits(packet)) return sink_.accept(packet, now);
  // The packet will not come again; its initiator notices that when the work times out. This
  // happens only if the peer has used more than its share.
  ++counters_.no_memory;
}

void CtpIngress::take_without_channel(std::span<const std::byte> head, const RxFrame& frame,
                                      Time now) {
  if (!datagrams_.are(head)) return setup_.handle(head, *frame.from, frame.path, now);
  Received packet;
  const bool ours = datagrams_.parse(std::span(frame.data, frame.bytes), head, *frame.from, packet);
  if (ours && sink_.admits(packet)) sink_.accept(packet, now);
}

}  // namespace urma::transport
