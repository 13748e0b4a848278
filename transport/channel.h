// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "urma/core/ids.h"
#include "urma/core/time.h"
#include "wire/frame.h"
#include "wire/ways.h"

namespace urma::transport {

// Identifies one slice of a work to the layer above. The transport does not interpret it and
// returns it unchanged; the layer above decides whether the slice still exists.
struct SliceRef {
  uint32_t slot = UINT32_MAX;
  uint32_t generation = 0;

  friend bool operator==(SliceRef, SliceRef) = default;
};

// Answers leave before requests, so that a flood of requests never delays the answers that would
// drain it. Urgent requests leave before usual ones (`request`).
enum class Class : uint8_t { answer, urgent, request };
inline constexpr unsigned classes = 3;

// Where slices take turns by their cost, that is their payload in bytes, but at least this.
inline constexpr uint32_t least_slice_cost = 2048;

// Returns how many packets `bytes` bytes of payload need.
constexpr uint32_t packets_of(uint32_t bytes, uint32_t packet_bytes) {
  // Avoids a division in the usual case.
  return bytes <= packet_bytes ? 1 : (bytes + packet_bytes - 1) / packet_bytes;
}

// The largest packet that `Channel::begin` is used for; larger slices are queued.
inline constexpr uint32_t most_at_once = 4096;

// The longest datagram, even if a packet can hold more.
inline constexpr uint32_t most_datagram_bytes = largest_rtp_mtu;

// The values that both ends agreed on when the channel was made.
struct Facts {
  uint32_t packet_bytes = 0;  // payload of a full packet (UB: MTU)
  uint32_t tassn_window = 0;  // W: slices that an initiator queue may have outstanding
  uint16_t reads = 0;         // reads that may be outstanding
  bool sequences = false;     // the peer keeps the order of queues that ask for it
  // R: atomics of an initiator queue whose fetched values the target remembers; 0 without atomics.
  uint8_t atomic_results = 0;
};

// Carries slices to one peer. It does not know what they contain. The transport owns it and reports
// when it begins and ends (upper.h). Engine thread only; no function here blocks, allocates or
// calls back.
class Channel {
 public:
  virtual ~Channel() = default;

  // Queues a reference to a slice of `bytes` bytes of payload (0 to 64 KiB); its packets are pulled
  // from the PacketSource when there is room. Returns false if there is no memory for it now: offer
  // it again later. A slice cannot be taken back; the source marks the packets of a cancelled slice
  // as withdrawn.
  virtual bool offer(SliceRef slice, Class traffic, uint32_t bytes) = 0;

  // Returns whether `begin` may return memory.
  virtual bool writes_at_once() const { return false; }
  // Returns memory for a slice of one packet that bypasses the queue: `bytes` bytes of transaction
  // headers and payload. The packet has arrived once it is written and `end` is called. Returns
  // null if the slice must be offered: other slices wait, there is no room, or the medium has no
  // such memory.
  virtual std::byte* begin(uint32_t) { return nullptr; }
  virtual void end() {}

  // Returns the address of this part of a peer's segment, if it is mapped here and the peer allows
  // direct access: then a slice is copied to or from it, and nothing is sent. The peer cannot
  // revoke the memory before `let_go`, so call `let_go` soon. Only one range can be held at a time.
  // If this returns null, or `let_go` returns false, offer the slice: the peer answers why.
  virtual std::byte* hold(const MemoryRange&, PreparedSegment&) { return nullptr; }
  // Returns whether segments that `hold` has prepared may be used now: the state of the peer is
  // being watched. A call of `hold` begins that.
  bool watched() const { return watched_; }
  virtual bool let_go() { return true; }
  // Opens a lane to this part of a peer's segment, as Ways::open_lane.
  virtual Laned open_lane(const MemoryRange&, MappedLane&) { return Laned::unmapped; }

  // Returns whether the peer is alive but stalled: it has taken nothing for so long that no slice
  // should be offered. Its mapped memory can still be used. PacketSink::up is called when it
  // continues.
  virtual bool silent() const { return false; }

  // Returns whether the peer acknowledges packets. If not, packets are lost only if the peer has no
  // room for them.
  virtual bool acknowledges() const { return true; }

  // The caller waits for `change` more answers (fewer if it is negative). While it waits for any,
  // or packets are unacknowledged, a silent peer is asked for a sign of life, and finally declared
  // dead.
  virtual void expect_answers(int32_t change, Time now) = 0;

  // The peer has answered a slice that it is not ready. For statistics.
  virtual void note_not_ready() {}

  // Returns when a packet was last acknowledged for the first time; Time{} if none was. Making the
  // channel does not count: it is not progress of the works that wait for it.
  virtual Time last_progress() const = 0;

  virtual const Facts& facts() const = 0;

 protected:
  bool watched_ = false;  // what `watched` returns
};

// The reason why a channel ended or was not made, and what it means for the peer.
enum class Why : uint8_t {
  silent,       // no packet came for too long: the peer may come back, or restart
  unreachable,  // no channel could be made in time
  refused,      // the peer uses another version of the protocol
  no_room,      // the peer had no room for another peer for as long as it was asked
  restarted,    // another incarnation runs at the address: the peer's is over
  left,         // the peer closed its device: this incarnation is over
  idle,         // the channel was not used: the next work makes a new channel
};

// Gives out channels. The transport implements it for the layer above. Only the thread that runs
// the engine calls it.
class Channels {
 public:
  virtual ~Channels() = default;

  // Returns the peer's channel. Returns null while it is being made, which this call begins; then
  // PacketSink::up or ::down follows. Must not be called from inside a PacketSink.
  virtual Channel* channel(PeerId peer, Time now) = 0;
  // Returns false if this incarnation of the peer is over.
  virtual bool knows(PeerId peer) = 0;
  // Returns the EID of the peer; zero if this incarnation is over.
  virtual Eid eid(PeerId peer) = 0;
  // Returns why there is no channel: the answer of the peer to the latest set-up, or `unreachable`.
  virtual Why why_not(PeerId peer) = 0;
  // Returns an object that sends datagrams to this peer, without a channel, until the next call of
  // this function. Only its `begin` and `end` can be used; if `begin` returns null, no datagram is
  // taken now. Returns null if this incarnation is over.
  virtual Channel* unreliable(PeerId peer) = 0;
};

}  // namespace urma::transport
