#pragma once

#include <cstddef>
#include <cstdint>

#include "urma/core/ids.h"
#include "urma/core/time.h"
#include "wire/frame.h"
#include "wire/ways.h"

namespace urma::transport {

// One slice of a work, as its owner names it. Opaque here: it comes back unchanged, and whether it
// still means anything is for the owner to say.
struct SliceRef {
  uint32_t slot = UINT32_MAX;
  uint32_t generation = 0;

  friend bool operator==(SliceRef, SliceRef) = default;
};

// Answers go ahead of requests, so that a flood of requests never starves the answers that would
// drain it.
enum class Class : uint8_t { answer, request };
inline constexpr unsigned classes = 2;

// Packets that so many bytes of payload take.
constexpr uint32_t packets_of(uint32_t bytes, uint32_t packet_bytes) {
  // Without a division in the usual case.
  return bytes <= packet_bytes ? 1 : (bytes + packet_bytes - 1) / packet_bytes;
}

// What the packet of `Channel::begin` may hold: more takes its turn.
inline constexpr uint32_t most_at_once = 4096;

// No datagram is longer, however much a packet can hold.
inline constexpr uint32_t most_datagram_bytes = largest_rtp_mtu;

// What both ends agreed when the channel was made.
struct Facts {
  uint32_t packet_bytes = 0;  // payload of a full packet (UB: MTU)
  uint32_t tassn_window = 0;  // W: slices an initiator queue may have outstanding
  uint16_t reads = 0;         // reads outstanding
  bool sequences = false;     // the other end keeps the order of queues that ask for it
  // R: atomics of an initiator queue of which the target knows what they fetched; 0: it has none.
  uint8_t atomic_results = 0;
};

// What carries slices to one peer. Engine thread only; nothing here blocks, allocates or calls
// back.
class Channel {
 public:
  virtual ~Channel() = default;

  // Queues a reference to a slice of `bytes` bytes of payload (0 to 64 KiB); its packets are pulled
  // from the PacketSource when there is room. False: no memory for it now, offer it again later.
  // There is no way to take a slice back: the source says of each packet whether it is withdrawn.
  virtual bool offer(SliceRef slice, Class traffic, uint32_t bytes) = 0;

  // A slice of one packet, past the queue: memory for its packet of `bytes` bytes, transaction
  // headers and payload. It has arrived when it is written and `end` is called. Null: offer it, for
  // others wait, or there is no room, or the medium has no such memory.
  virtual std::byte* begin(uint32_t) { return nullptr; }
  virtual void end() {}

  // Where this part of a segment of the peer's lies, if this processor can reach it, and the peer
  // lets it be used so: then a slice is a copy, and nothing is sent. Until `let_go`, soon, the peer
  // does not have it to itself; one at a time. Null, or false at the end: offer the slice, and be
  // told why.
  virtual std::byte* hold(const MemoryRange&) { return nullptr; }
  virtual bool let_go() { return true; }

  // The other end lives, but stands still: it has taken nothing for so long that nothing should be
  // offered to it. What it holds can be had. PacketSink::up is called again when it goes on.
  virtual bool silent() const { return false; }

  // Whether it says what has arrived. If not, nothing is lost, but what the peer has no room for.
  virtual bool acknowledges() const { return true; }

  // How many more (or fewer) answers the user waits for. While there are any, or packets are
  // unacknowledged, a silent peer is asked for a sign of life, and at last given up.
  virtual void expect_answers(int32_t change, Time now) = 0;

  // When something new was last acknowledged. Time{}: nothing yet; that a channel was made is no
  // progress of the works that wait for it.
  virtual Time last_progress() const = 0;

  virtual const Facts& facts() const = 0;
};

// Why a channel ended, and what that says of the peer.
enum class Why : uint8_t {
  silent,       // nothing heard for too long: it may come back, or another life of it may
  unreachable,  // no channel could be made in time
  refused,      // it speaks another version
  no_room,      // it has no room for another peer, and had none for as long as it was asked
  restarted,    // another life runs at its address: this one is over
  left,         // it closed: this life is over
  idle,         // nobody used it: the next work makes another one, and nothing is wrong
};

// Where channels come from.
class Channels {
 public:
  virtual ~Channels() = default;

  // The peer's channel; null while it is being made, which this call begins: PacketSink::up or
  // ::down follows. Not from inside a PacketSink.
  virtual Channel* channel(PeerId peer, Time now) = 0;
  // False when this life of the peer is over.
  virtual bool knows(PeerId peer) = 0;
  // Where it is; nowhere when this life is over.
  virtual Eid address(PeerId peer) = 0;
  // Why there is no channel: what the peer said when it was last asked, or that it said nothing.
  virtual Why why_not(PeerId peer) = 0;
  // What carries messages that nobody answers, aimed at this peer until the next call: `begin` and
  // `end` only, and with `begin` null, none is taken now. It needs no channel of the peer's. Null:
  // this life is over.
  virtual Channel* unreliable(PeerId peer) = 0;
};

}  // namespace urma::transport
