#pragma once

#include <optional>
#include <span>

#include "base/chunk_queue.h"
#include "transport/channel.h"
#include "transport/rtp/loss.h"
#include "transport/rtp/routes.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// What has been sent and not yet acknowledged: for each packet which slice it belongs to and when
// it left, never what it holds. 24 bytes for a packet in flight, nothing for an idle channel.
class SentWindow {
 public:
  struct Packet {
    SliceRef slice;
    uint32_t tpmsn = 0;  // wire bits
    uint32_t sent = 0;   // in units of 256 ns, wrapping: ages are differences
    uint16_t index = 0;  // in its slice
    uint16_t bytes = 0;  // of the frame
    uint8_t route : 7 = 0;
    bool last : 1 = false;  // of its slice
    bool acknowledged : 1 = false;
    bool lost : 1 = false;  // waits to be sent again
    bool asked : 1 =
        false;           // its last copy is a question: nothing showed that the one before is lost
    uint8_t copies = 1;  // sent so often; sticks at 255
  };
  using Queue = ChunkQueue<Packet, 32>;
  using Pool = Queue::Pool;

  // `routes`: is told what becomes of packets; null: there is one.
  SentWindow(Psn first, Routes* routes) : first_(first), routes_(routes) {}

  Psn first() const { return first_; }  // oldest that is kept
  Psn next() const { return first_ + packets_.size(); }
  Routes* routes() const { return routes_; }
  bool empty() const { return packets_.empty(); }
  uint64_t inflight_bytes() const { return inflight_bytes_; }
  uint32_t lost_packets() const { return lost_packets_; }
  // Of those sent once.
  Psn highest_acknowledged() const { return highest_acknowledged_; }

  // Null when the pool is exhausted.
  Packet* push(const Packet& packet, Time now, Pool& pool);
  // The sizes and time of a packet that is about to leave (again), by its route.
  void sending(Packet& packet, uint16_t bytes, Time now);

  struct Acknowledgement {
    uint64_t bytes = 0;           // newly acknowledged
    std::optional<Duration> rtt;  // from the latest packet that was sent only once
    Psn highest{};                // highest newly acknowledged
    Time newest_sent{};           // of what was newly acknowledged, if its last copy is meant
    bool overtaken = false;       // a later packet had been acknowledged before, and both sent once
    bool in_vain = false;         // what was believed lost was not: its first copy has come
    Time oldest_first_copy = never;  // when the oldest one that was sent only once has left
    std::optional<bool> answered;    // a question is acknowledged: in the time that an answer takes
  };
  // How long the answer to a packet takes.
  struct AnswerTimes {
    Duration least{};
    Duration longest{};  // if it is answered at once
  };
  // Everything up to `through`, and what `selective` (relative to `through`) says beyond.
  Acknowledgement acknowledge(Psn through, const Saetph* selective, const AnswerTimes& answer,
                              Time now, Pool& pool);
  // Forgets acknowledged packets at the front. Returns how many slices ended with one of them and
  // are named in `delivered`; call again while it is filled.
  size_t retire(std::span<SliceRef> delivered, Pool& pool);

  struct Missing {
    uint64_t lost_bytes = 0;   // newly marked as lost
    Time oldest_sent = never;  // of those that are asked about and may only be late
    Time until = never;        // when the next of these has been overtaken on its route
  };
  // `tolerance`: for what was overtaken on its own route; `evidence` is of all of them.
  Missing mark_lost(const LossEvidence& evidence, Duration tolerance, Time now, Pool& pool);
  // All that is unacknowledged and left at least so long ago, and the first of it in any case.
  // Returns the bytes newly marked as lost.
  uint64_t mark_all_lost(Duration least_age, Time now, Pool& pool);
  // The last packet that is not acknowledged is to be sent again, as a question; or the first ones,
  // at least one and otherwise no more than that. Returns how many.
  void ask_last(Time now, Pool& pool);
  unsigned ask_first(unsigned most_packets, uint64_t most_bytes, Time now, Pool& pool);

  // Packets from the front on: for what is to be sent again.
  Queue::Cursor begin(Pool& pool) { return packets_.begin(pool); }

  void release(Pool& pool);
  // Recomputes the counters.
  bool check(Pool& pool);

 private:
  static uint32_t stamp(Time now);
  static Duration age(const Packet& packet, Time now);
  bool may_answer(const Packet& packet, Duration since, const AnswerTimes& answer) const;
  void lose(Packet& packet, Time sent, bool asked = false);

  Queue packets_;
  Psn first_;
  Routes* routes_;
  Psn highest_acknowledged_{};
  uint64_t inflight_bytes_ = 0;  // neither acknowledged nor lost
  uint32_t lost_packets_ = 0;
};

}  // namespace urma::transport
