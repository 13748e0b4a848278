#pragma once

#include "drivers/driver.h"
#include "jetty/event_sink.h"
#include "jetty/target/guesses.h"
#include "memseg/segment_table.h"

namespace urma::engine {

// Of tokens that a medium compares itself: as for those of packets, each who guesses is counted for
// himself, and the application is told. They are nobody's that has a channel, so events name no
// peer.
class TokenJudge final : public drivers::TokenJudge {
 public:
  TokenJudge(const memseg::SegmentTable& segments, jetty::EventSink& events)
      : segments_(segments), events_(events) {}

  bool hears(const Eid& who, Time now) override { return !guesses_.deaf_to(who, now); }
  void wrong(const Eid& who, TokenId id, TokenValue token, Time now) override {
    events_.raise({.kind = EventKind::bad_tokens});
    if (segments_.once(id, token)) return;
    if (guesses_.wrong(who, now)) events_.raise({.kind = EventKind::guessing});
  }

 private:
  const memseg::SegmentTable& segments_;
  jetty::EventSink& events_;
  jetty::Guesses guesses_;
};

}  // namespace urma::engine
