// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/segment_memory.h"
#include "jetty/event_sink.h"
#include "jetty/target/guesses.h"
#include "memseg/segment_table.h"

namespace urma::engine {

// Judges wrong tokens that a medium received itself (cxl:?share=segment), as the transaction layer
// judges those in packets: it counts guesses for each address and raises events for the
// application. The peer may have no channel, so the events name no peer. Called by the thread that
// runs the pass.
class TokenJudge final : public drivers::TokenJudge {
 public:
  TokenJudge(const memseg::SegmentTable& segments, jetty::EventSink& events)
      : segments_(segments), events_(events) {}

  bool admits(const Eid& sender, Time now) override { return !guesses_.ignores(sender, now); }
  void wrong(const Eid& sender, TokenId id, TokenValue token, Time now) override {
    events_.raise({.kind = EventKind::bad_tokens});
    if (segments_.once(id, token)) return;
    if (guesses_.wrong(sender, now)) events_.raise({.kind = EventKind::guessing});
  }

 private:
  const memseg::SegmentTable& segments_;
  jetty::EventSink& events_;
  jetty::Guesses guesses_;
};

}  // namespace urma::engine
