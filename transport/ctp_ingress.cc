#include "transport/ctp_ingress.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"

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
  for (const RxFrame& frame : frames) take(frame, now);
  batch_.deliver(now);
}

void CtpIngress::take(const RxFrame& frame, Time now) {
  Head& head = heads_[batch_.index()];
  const size_t copied = std::min<size_t>(frame.bytes, head_bytes);
  copy_head(head.data(), frame.data, copied);
  ++counters_.received;
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
  batch_.next() = {.peer = channel->peer(),
                   .channel = channel->index(),
                   .slice = channel->name_slice(),
                   .last = true,
                   .in_order = true,
                   .withdrawn = filler,
                   .head = std::span<const std::byte>(head).first(copied).subspan(Ctph::size),
                   .bytes = std::span(frame.data, frame.bytes).subspan(Ctph::size)};
  if (batch_.admits()) return batch_.add(now);
  // The packet will not come again; its initiator notices that when the work times out. This
  // happens only if the peer has used more than its share.
  ++counters_.no_memory;
}

void CtpIngress::take_without_channel(std::span<const std::byte> head, const RxFrame& frame,
                                      Time now) {
  if (!datagrams_.are(head)) {
    // The copy belongs to the batch, which is delivered first.
    Head setup;
    std::copy(head.begin(), head.end(), setup.begin());
    return take_setup(std::span(setup).first(head.size()), frame, now);
  }
  const auto packet = std::span(frame.data, frame.bytes);
  if (datagrams_.parse(packet, head, *frame.from, batch_.next()) && batch_.admits()) {
    batch_.add(now);
  }
}

}  // namespace urma::transport
