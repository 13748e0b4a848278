// SPDX-License-Identifier: Apache-2.0
#include "transport/utp.h"

#include <algorithm>

#include "wire/ta_chain.h"

namespace urma::transport {

Utp::Utp(uint32_t mtu, Carrier carrier, Counters& counters)
    : carrier_(carrier),
      facts_{.packet_bytes = std::min(mtu, most_datagram_bytes)},
      packet_bytes_(facts_.packet_bytes + TaRequest::max_size),
      counters_(counters),
      memory_(capacity * packet_bytes_) {}

std::byte* Utp::begin(uint32_t bytes) {
  if (written_ - settled_ == capacity || bytes > packet_bytes_) return nullptr;
  begun_bytes_ = bytes;
  return memory(written_);
}

void Utp::end() {
  packets_[written_ % capacity] = {.aim = aim_, .bytes = begun_bytes_};
  ++written_;
  ++counters_.datagrams_sent;
}

void Utp::fill(TxFrame& frame) {
  const Packet& packet = packets_[filled_ % capacity];
  const bool compact = carrier_ == Carrier::compact;
  const size_t header = compact ? Ctph::size : Utph::size;
  frame.head_bytes = static_cast<uint8_t>(header + Addresses::size);
  frame.piece_count = 1;
  frame.pieces[0] = {memory(filled_), packet.bytes};
  frame.tail_bytes = 0;
  frame.ecn = Ecn::not_ect;
  frame.cci = 0;
  const std::span<std::byte> head(frame.head, TxFrame::head_room);
  if (compact) {
    Ctph{.next = NextHeader::full_addresses}.emit(head.first<Ctph::size>());
  } else {
    const auto padding = static_cast<uint8_t>(-frame.bytes() & 3);
    Utph{.padding = padding}.emit(head.first<Utph::size>());
    frame.tail_bytes = padding;
    frame.tail.fill(std::byte{0});
  }
  packet.aim.addresses.emit(head.subspan(header).first<Addresses::size>());
  frame.to = packet.aim.to;
  frame.path = packet.aim.path;
  ++filled_;
}

void Utp::forget(uint64_t frames) {
  while (settled_ != filled_ && packets_[settled_ % capacity].frames <= frames) ++settled_;
}

}  // namespace urma::transport
