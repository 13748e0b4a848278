// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/slab.h"
#include "engine/line_jetty.h"
#include "engine/pair_message.h"
#include "engine/token_judge.h"
#include "memseg/segment_table.h"
#include "transport/transport.h"

namespace urma::engine {

// The pairs by which peers access the memory of this process. It tells a peer the key of a segment
// for which that shows a valid token, and only then makes an end for it. When a key is to end, the
// pairs of all peers that were told it end first: a device may give the same key to other memory
// later. Called by the thread that runs the pass.
class PassivePairs {
 public:
  // All of these outlive this object.
  struct Uses {
    drivers::RemoteAccess& access;
    LineJetty& lines;
    transport::Transport& transport;
    const memseg::SegmentTable& segments;
    TokenJudge& judge;
  };
  explicit PassivePairs(const Uses& uses) : uses_(uses) {}

  // Handles a question of a peer.
  [[gnu::cold]] void handle(PeerId from, const PairMessage& question, Time now);
  // Handles news of an end. Returns false if the end is not one of these.
  [[gnu::cold]] bool handle(const drivers::RemoteAccess::News& news);
  // Ends pairs of peers that are over. Called now and then.
  void look();
  bool empty() const { return guests_.size() == 0; }

  enum class Keys : uint8_t {
    ended,
    ending,  // ask again
    stuck,   // a pair does not stop, because the peer's process does not run
  };
  // Ends the pairs of peers that were told a key of this memory, of which no other is told from now
  // on. Call it until they have stopped.
  Keys end_keys(std::span<const std::byte> memory, Time now);
  // The same for all memory. Returns false while pairs are ending.
  bool end_all_keys(Time now);

 private:
  static constexpr uint32_t most = 256;
  static constexpr size_t most_told = 64;
  using Memory = std::span<const std::byte>;

  // A peer that was told keys. `end` is empty while it has no pair.
  struct Guest {
    PeerId peer;
    Eid eid;
    std::vector<Memory> told;
    uint32_t number = 0;  // the peer's
    Handle end;
    drivers::RemoteAccess::Description other{};
    drivers::RemoteAccess::Description own{};
    bool connected = false;
    bool stopping = false;
    Time stopping_since{};  // when a caller began to wait for that
  };

  Guest* find(PeerId peer);
  bool note_told(PeerId peer, const Eid& eid, Memory memory);
  void make(PeerId from, const PairMessage& question);
  void end(PeerId from, uint32_t number);
  void stop(Guest& guest);
  Keys state_of(Guest& guest, Time now);
  void tell_key(PeerId from, const PairMessage& question, Time now);
  std::optional<drivers::RemoteAccess::Opened> open(PeerId from, const Eid& asker,
                                                    const MemoryRange& range, Time now);
  void send(PeerId to, const PairMessage& message);

  const Uses uses_;
  Slab<Guest> guests_{most};
};

}  // namespace urma::engine
