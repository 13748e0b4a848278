#pragma once

#include <span>

#include "transport/channel.h"
#include "urma/core/ids.h"
#include "urma/core/time.h"
#include "wire/frame.h"

namespace urma::transport {

// One packet to be written, for the first time or again. The transport header's room is at the
// front of the frame and counted in `frame->head_bytes`; the source appends the transaction headers
// and names the payload.
struct PacketSlot {
  SliceRef slice;
  uint16_t index = 0;  // of the packet in its slice
  bool again = false;
  TxFrame* frame = nullptr;
  // Set by the source when the slice is no longer wanted: the packet leaves as filler, with the
  // BTAH that the source wrote, or with nothing if the source no longer knows the slice.
  bool withdrawn = false;
};

// Where packets come from. One call for a burst.
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  virtual void write(std::span<PacketSlot> packets) = 0;
};

// A packet that came, once: duplicates have been removed, order has not been made.
struct Received {
  PeerId peer;
  uint32_t channel = 0;  // one of the peer's, for as long as it is up
  uint32_t slice = 0;    // TPMSN: names the slice within the channel
  bool last = false;
  bool in_order = false;   // everything that was sent before it has come
  bool withdrawn = false;  // filler: only a BTAH
  bool datagram = false;   // came alone: nobody waits for an answer, and `peer` may be null
  // The transaction headers: the beginning of `bytes`, perhaps as a copy. `bytes` may lie where its
  // sender can still change it, so only payload is read there, once.
  std::span<const std::byte> head{};
  std::span<const std::byte> bytes{};  // headers and payload, until accept returns
};

// A path carries nothing any more, or does again; it was added and carries; either end took it
// away.
enum class PathIs : uint8_t { lost, back, added, removed };

// Who is told. Calls come from inside the transport's own, on the engine's thread; of the transport
// only Channel may be called from inside them.
class PacketSink {
 public:
  virtual ~PacketSink() = default;

  // Whether `accept` could take this packet after `waiting` others. If not it is treated as lost on
  // the way, and comes again: the one form of back-pressure that cannot deadlock.
  virtual bool admits(const Received& packet, size_t waiting) = 0;
  virtual void accept(std::span<const Received> packets, Time now) = 0;
  // Every packet of these slices has been acknowledged, in the order in which they were offered.
  virtual void delivered(PeerId peer, std::span<const SliceRef> slices, Time now) = 0;

  // Again when its channel is not silent any more.
  virtual void up(PeerId peer, Channel& channel, Time now) = 0;
  // The channel is silent from now on (`Channel::silent`): `up` follows, or `down`.
  virtual void silent(PeerId) {}
  // Of one of several paths to this peer. The channel stays.
  virtual void path(PeerId, uint8_t /*number*/, PathIs) {}
  // The channel, if there was one, is gone already. After `restarted` and `left` so is the peer.
  virtual void down(PeerId peer, Why why, Time now) = 0;
};

}  // namespace urma::transport
