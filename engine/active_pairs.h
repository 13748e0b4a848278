// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/flat_map.h"
#include "base/slab.h"
#include "engine/line_jetty.h"
#include "engine/pair_message.h"
#include "jetty/carrier.h"
#include "jetty/transactions.h"
#include "transport/transport.h"

namespace urma::engine {

// The pairs by which this device accesses the memory of peers: one for each peer that works need
// one for. When a work could have used a pair, it asks the peer for the key of the segment, and
// then for a pair. It replaces a pair that has failed. Before the works of a failed pair begin
// again, the peer has destroyed its end, so that nothing that was on its way arrives later. Called
// by the thread that runs the pass.
class ActivePairs final : public jetty::Carrier {
 public:
  // All of these outlive this object.
  struct Uses {
    drivers::RemoteAccess& access;
    LineJetty& lines;
    transport::Transport& transport;
    jetty::CarriedSlices& slices;
  };
  explicit ActivePairs(const Uses& uses);

  // Carrier
  uint32_t least_bytes() const override { return uses_.access.least_bytes(); }
  uint32_t most_bytes() const override { return uses_.access.most_bytes(); }
  bool of_accelerators() const override { return uses_.access.of_accelerators(); }
  Begun begin(const Task& task, Time now) override;
  void stop(PeerId peer, Time now) override;

  // A slice to this peer was carried.
  void worked(PeerId peer);
  // Handles an answer of a peer.
  [[gnu::cold]] void handle(PeerId from, const PairMessage& answer, Time now);
  // Handles news of an end. Returns false if the end is not one of these.
  [[gnu::cold]] bool handle(const drivers::RemoteAccess::News& news, Time now);
  // Repeats questions that are due, and ends pairs to peers that are over.
  void look(Time now);
  // Returns when `look` has something to do.
  Time next_look() const { return look_at_; }

 private:
  static constexpr uint32_t most = 256;
  static constexpr size_t most_keys = 64;
  static constexpr size_t most_refused = 16;
  // A question is repeated after this time, then after twice the time, and so on.
  static constexpr Duration ask_again_after = std::chrono::milliseconds(100);
  static constexpr Duration longest_wait = std::chrono::milliseconds(3200);
  // A key that the peer refused is not asked for again for this time.
  static constexpr Duration refused_for = std::chrono::seconds(1);
  static constexpr Duration first_pause = std::chrono::milliseconds(10);
  static constexpr Duration longest_pause = std::chrono::seconds(10);
  static constexpr uint32_t most_questions = 6;
  static constexpr Duration between_looks = std::chrono::seconds(1);

  enum class State : uint8_t {
    resting,     // this device has no end
    making,      // the driver makes the end
    asking,      // the peer was asked for its end
    connecting,  // the driver connects the two ends
    up,          // slices are carried
    stopping,    // the driver destroys the end
    fencing,     // the peer was asked to destroy its end
  };
  // A part of the peer's memory that it has opened.
  struct Key {
    MemoryRange range;
    uint32_t key;
  };
  // A range whose key was refused.
  struct Refused {
    MemoryRange range;
    Time until;
  };
  struct Pair {
    PeerId peer;
    State state = State::resting;
    bool asked = false;   // the peer may have an end for this number
    bool was_up = false;  // something may have been sent over it
    uint32_t number = 0;
    Handle end;
    drivers::RemoteAccess::Description own{};
    uint32_t questions = 0;        // asked about this pair, without an answer
    Time ask_at{};                 // asking, fencing: when it is asked again
    Time again_at{};               // resting: when it may be made again
    Duration pause = first_pause;  // before it is made again
    std::vector<Key> keys;
    std::vector<Refused> refused;
    MemoryRange wanted{};     // the range for which a key was asked last
    uint32_t key_number = 0;  // of that question; 0 if it was answered
    Time key_at{};            // when another one may be asked, if it is not answered
    Duration key_wait = ask_again_after;
  };

  static uint64_t key_of(PeerId peer) { return uint64_t{peer.index} << 32 | peer.generation; }
  Pair* find(PeerId peer);
  Pair* find_or_make(PeerId peer);
  static const Key* find_key(const Pair& pair, const MemoryRange& range);
  static bool was_refused(const Pair& pair, const MemoryRange& range, Time now);
  void ask_for_key(Pair& pair, const MemoryRange& range, Time now);
  void take_key(Pair& pair, const PairMessage& answer, Time now);
  void make(Pair& pair, Time now);
  void stop(Pair& pair);
  void stopped(Pair& pair, Time now);
  void fenced(Pair& pair, Time now);
  void ask(Pair& pair, Time now);
  void send(const Pair& pair, const PairMessage& message);
  void look_no_later(Time at) { look_at_ = std::min(look_at_, at); }

  const Uses uses_;
  Slab<Pair> pairs_{most};
  FlatMap<uint64_t> by_peer_{most};
  uint32_t next_number_ = 1;
  Time look_at_ = never;
};

}  // namespace urma::engine
