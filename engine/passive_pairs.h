#pragma once

#include "base/slab.h"
#include "engine/line_jetty.h"
#include "engine/pair_message.h"
#include "engine/token_judge.h"
#include "memseg/segment_table.h"
#include "transport/transport.h"

namespace urma::engine {

// The pairs by which peers access the memory of this process: makes an end for each peer that asks
// for one, and tells peers the keys of segments for which they show a valid token. Called by the
// thread that runs the pass.
class PassivePairs {
 public:
  // All of these outlive this object.
  struct Uses {
    drivers::RemoteAccess& access;
    LineJetty& lines;
    transport::Channels& channels;
    const memseg::SegmentTable& segments;
    TokenJudge& judge;
  };
  explicit PassivePairs(const Uses& uses) : uses_(uses) {}

  // Handles a question of a peer.
  [[gnu::cold]] void handle(PeerId from, const PairMessage& question, Time now);
  // Handles news of an end. Returns false if the end is not one of these.
  [[gnu::cold]] bool handle(const drivers::RemoteAccess::News& news);
  // Ends pairs of peers that are over. Called a few times in a second.
  void look();
  bool empty() const { return pairs_.size() == 0; }

 private:
  static constexpr uint32_t most = 256;

  struct Pair {
    PeerId peer;
    uint32_t number;  // the peer's
    Handle end;
    drivers::RemoteAccess::Description other;
    drivers::RemoteAccess::Description own{};
    bool connected = false;
    bool stopping = false;
  };

  Pair* find(PeerId peer);
  void make(PeerId from, const PairMessage& question);
  void end(PeerId from, uint32_t number);
  void stop(Pair& pair);
  void tell_key(PeerId from, const PairMessage& question, Time now);
  void send(PeerId to, const PairMessage& message);

  const Uses uses_;
  Slab<Pair> pairs_{most};
};

}  // namespace urma::engine
