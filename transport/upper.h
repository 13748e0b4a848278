// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "transport/channel.h"
#include "urma/core/ids.h"
#include "urma/core/time.h"
#include "wire/frame.h"

namespace urma::transport {

// One packet to be written, for the first time or again. The front of the frame has room for the
// transport header, which `frame->head_bytes` includes; the source appends the transaction headers
// and points the pieces at the payload.
struct PacketSlot {
  SliceRef slice;
  uint16_t index = 0;  // of the packet in its slice
  bool again = false;
  TxFrame* frame = nullptr;
  // Set by the source if the slice was cancelled: the packet leaves as filler, with the BTAH that
  // the source wrote, or empty if the source no longer knows the slice.
  bool withdrawn = false;
};

// Writes the packets of offered slices; the layer above implements it. It is called once for a
// burst.
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  virtual void write(std::span<PacketSlot> packets) = 0;
};

// A received packet. Duplicates have been removed; packets are not in order.
struct Received {
  PeerId peer;
  uint32_t channel = 0;  // its number, unique while it is up
  uint32_t slice = 0;    // TPMSN: names the slice within the channel
  bool last = false;
  bool in_order = false;   // all packets sent before it have come
  bool withdrawn = false;  // filler: a BTAH at most
  bool datagram = false;   // without a channel: it is not answered, and `peer` may be null
  // The transaction headers: the beginning of `bytes`, or a copy of it. The sender may still be
  // able to change `bytes`, so only payload is read there, once.
  std::span<const std::byte> head{};
  std::span<const std::byte> bytes{};  // headers and payload, until accept returns
};

// A change of one path. lost: it carries no packets now. back: it carries packets again. added: it
// was added, and carries packets. removed: either end removed it.
enum class PathIs : uint8_t { lost, back, added, removed };

// Receives packets and events of peers; the layer above implements it. It is called from inside
// calls of the transport, on the engine's thread. From inside these functions only Channel may be
// called, and no other function of the transport.
class PacketSink {
 public:
  virtual ~PacketSink() = default;

  // Returns whether `accept` could take this packet now. If not, the packet is treated as lost and
  // retransmitted: the one form of back-pressure that cannot deadlock.
  virtual bool admits(const Received& packet) = 0;
  virtual void accept(const Received& packet, Time now) = 0;
  // Takes the packet of a slice that has no other, if it is the one that is expected next of its
  // queue, and returns true. Returns false, without any effect, if it is not: then it must be
  // admitted and accepted. `packet`: the transaction headers and payload; the sender may still be
  // able to change them, so each byte is read once.
  virtual bool accept_expected(PeerId, std::span<const std::byte> /*packet*/, Time) {
    return false;
  }
  // Takes the packet that continues the slice of the packet before it, and returns true. Returns
  // false, without any effect, if it does not: then it must be admitted and accepted.
  virtual bool accept_next(const Received&) { return false; }
  // Each packet of these slices has been acknowledged. Slices come in the order of their offers.
  virtual void delivered(PeerId peer, std::span<const SliceRef> slices, Time now) = 0;

  // The peer has a channel, or its channel is not silent any more.
  virtual void up(PeerId peer, Channel& channel, Time now) = 0;
  // The channel is silent (`Channel::silent`) until `up` or `down` follows.
  virtual void silent(PeerId) {}
  // One of several paths to this peer has changed. The channel stays.
  virtual void path(PeerId, uint8_t /*number*/, PathIs) {}
  // The channel, if there was one, no longer exists. After `restarted` and `left` neither does the
  // peer.
  virtual void down(PeerId peer, Why why, Time now) = 0;
};

}  // namespace urma::transport
