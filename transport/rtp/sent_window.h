// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "base/chunk_queue.h"
#include "transport/channel.h"
#include "transport/rtp/channel_routes.h"
#include "transport/rtp/loss.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// The packets of one channel that were sent and are not yet retired: for each one its slice and
// when it left. The window does not know what a packet contains (a lost packet is written anew by
// the layer above) and does not judge whether one is lost: it applies the rules of loss.h. It takes
// 24 bytes for each packet in flight, from a pool of the device, and none for an idle channel. Tp
// owns it.
class SentWindow {
 public:
  struct Packet {
    SliceRef slice;
    uint32_t tpmsn = 0;  // as on the wire
    uint32_t sent = 0;   // units of 256 ns; wraps, so only differences have a meaning
    uint16_t index = 0;  // within its slice
    uint16_t bytes = 0;  // size of the frame
    uint8_t route : 7 = 0;
    bool last : 1 = false;  // the last packet of its slice
    bool acknowledged : 1 = false;
    bool lost : 1 = false;   // to be sent again
    bool asked : 1 = false;  // its last copy is a question: the one before need not be lost
    uint8_t copies = 1;      // how often it was sent; stops at 255
  };
  using Queue = ChunkQueue<Packet, 32>;
  using Pool = Queue::Pool;

  // `routes`: notified of packets that leave, arrive or are lost.
  SentWindow(Psn first, ChannelRoutes routes) : first_(first), routes_(routes) {}

  // These return the number of the oldest packet that is not retired, and of the next new packet.
  Psn first() const { return first_; }
  Psn next() const { return first_ + packets_.size(); }
  ChannelRoutes routes() const { return routes_; }
  bool empty() const { return packets_.empty(); }
  // Returns the bytes of packets that are neither acknowledged nor lost.
  uint64_t inflight_bytes() const { return inflight_bytes_; }
  // Returns how many packets wait to be sent again.
  uint32_t lost_packets() const { return lost_packets_; }
  // Returns the highest acknowledged packet among those that were sent once.
  Psn highest_acknowledged() const { return highest_acknowledged_; }

  // Appends a new packet. Returns null if the pool is exhausted.
  Packet* push(const Packet& packet, Time now, Pool& pool);
  // Notes the frame's size and the time of a packet that is about to leave, for the first time or
  // again, over `packet.route`.
  void sending(Packet& packet, uint16_t bytes, Time now);

  // The evidence of one acknowledgement.
  struct Acknowledgement {
    uint64_t bytes = 0;           // newly acknowledged bytes
    std::optional<Duration> rtt;  // of the latest packet that was sent once
    Psn highest{};                // the highest newly acknowledged packet
    Time newest_sent{};           // when the newest copy left that is known to have arrived
    uint32_t spurious = 0;        // packets that were taken for lost and have arrived
    bool overtaken = false;       // a later packet was acknowledged earlier; both were sent once
    bool in_vain = false;         // the first copy of a packet that was taken for lost has arrived
    Time oldest_first_copy = never;  // when the oldest packet left that was sent once
    // Set if a question is acknowledged: whether this acknowledgement came in time to be its
    // answer.
    std::optional<bool> answered;
  };
  // The least and the longest time that the answer to a packet takes, which show which copy was
  // answered.
  struct AnswerTimes {
    Duration least{};
    Duration longest{};  // if the peer answers immediately
  };
  // Marks as acknowledged all packets up to `through`, and those beyond it that `selective`, which
  // is relative to `through`, reports as arrived. `selective` may be null.
  Acknowledgement acknowledge(Psn through, const Saetph* selective, const AnswerTimes& answer,
                              Time now, Pool& pool);
  // Removes acknowledged packets from the front. Writes to `delivered` the slices whose last packet
  // was removed, and returns how many. Call it again while it fills `delivered`.
  size_t retire(std::span<SliceRef> delivered, Pool& pool);

  struct Missing {
    uint64_t lost_bytes = 0;   // bytes newly marked as lost
    Time oldest_sent = never;  // when the oldest packet was sent that may be late instead of lost
    Time until = never;        // when the next of these packets becomes lost on its route
  };
  // Marks the packets as lost that `evidence`, which is about all routes, shows to be lost, and
  // those that later packets on their own route show to be lost; `tolerance` applies to the latter
  // only.
  Missing mark_lost(const LossEvidence& evidence, Duration tolerance, Time now, Pool& pool);
  // Marks as lost the first packet that is not acknowledged, and the others that left at least
  // `least_age` ago. Returns the bytes newly marked as lost.
  uint64_t mark_all_lost(Duration least_age, Time now, Pool& pool);
  // Marks packets to be sent again as questions: the last one in flight; or the first ones that are
  // not acknowledged, up to both limits but at least one. `ask_first` returns how many.
  void ask_last(Time now, Pool& pool);
  unsigned ask_first(unsigned most_packets, uint64_t most_bytes, Time now, Pool& pool);

  // Iterates over the packets from first() on, to find those that are to be sent again.
  Queue::Cursor begin(Pool& pool) { return packets_.begin(pool); }

  // Gives all memory back to the pool; the owner calls this before it destroys the window.
  void release(Pool& pool);
  // Recomputes the counters, and returns whether they are right. For assertions.
  bool check(Pool& pool);

 private:
  // `stamp` returns the time as Packet::sent stores it; `age` returns how long ago the packet was
  // last sent.
  static uint32_t stamp(Time now);
  static Duration age(const Packet& packet, Time now);
  // Returns whether an acknowledgement `since` after the packet left can be an answer to its last
  // copy.
  bool may_answer(const Packet& packet, Duration since, const AnswerTimes& answer) const;
  struct Findings;
  // Marks packets from the front as acknowledged, with a single path, up to the first one of which
  // more is to be found out.
  void acknowledge_run(Queue::Cursor& at, Psn& psn, Psn through, Time now, Acknowledgement& news);
  // These find out what an acknowledgement shows: of a packet that was sent more than once, or of
  // one that was sent once. Its last copy left `since` ago. `lost`: it was taken for lost.
  void learn_from_repeated(const Packet& packet, Duration since, bool lost,
                           const AnswerTimes& answer, Time now, Findings& found);
  void learn_from_single(const Packet& packet, Psn psn, Duration since, Time now, Findings& found);
  void lose(Packet& packet, Time sent, bool asked = false);

  Queue packets_;
  Psn first_;
  ChannelRoutes routes_;
  Psn highest_acknowledged_{};
  // The bytes of packets that are neither acknowledged nor lost: at most 65,535 packets of 8 KiB.
  uint32_t inflight_bytes_ = 0;
  uint32_t lost_packets_ = 0;
};

}  // namespace urma::transport
