// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/refusals.h"

#include <array>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using jetty::Refusals;

constexpr PeerId guesser{.index = 0, .generation = 1};
constexpr PeerId neighbour{.index = 1, .generation = 1};  // at the same address
constexpr PeerId elsewhere{.index = 2, .generation = 1};
constexpr uint32_t tolerated = jetty::Guesses::most_in_a_second;

class Addresses final : public transport::Channels {
 public:
  transport::Channel* channel(PeerId, Time) override { return nullptr; }
  bool knows(PeerId) override { return true; }
  Eid eid(PeerId of) override {
    REQUIRE(of);
    return ipv4(10, 0, 0, of == elsewhere ? 2 : 1);
  }
  transport::Why why_not(PeerId) override { return transport::Why::unreachable; }
  transport::Channel* unreliable(PeerId) override { return nullptr; }
};

class KeptEvents final : public jetty::EventSink {
 public:
  void raise(const Event& event) override { events.push_back(event); }
  std::vector<Event> events;
};

// A segment that grants writing, and the refusals of requests that name it.
struct Guarded {
  Guarded() {
    REQUIRE(segments.add({.base = memory.data(), .bytes = memory.size(), .rights = Rights::write},
                         {}, made) == memseg::SegmentTable::Added::added);
  }
  TaRequest request(TokenValue token) const {
    TaRequest out;
    out.base = {.opcode = static_cast<uint8_t>(TaOpcode::write), .token_present = true};
    out.memory = {.address = 0, .token_id = number(made.token.id), .length = 8};
    out.token.token = number(token);
    return out;
  }
  std::optional<Time> note(PeerId from, TokenValue token) {
    return refusals.note(from, request(token), *find_opcode(request(token).base.opcode), now);
  }
  // Tries a token that never was valid.
  std::optional<Time> guess(PeerId from) {
    if (++guessed == number(made.token.value)) ++guessed;
    return note(from, TokenValue(guessed));
  }
  size_t count(EventKind kind) const {
    return static_cast<size_t>(
        std::ranges::count(events.events, kind, [](const Event& event) { return event.kind; }));
  }

  Time now{1h};
  std::array<std::byte, 64> memory{};
  memseg::SegmentTable segments{4, SipHash(1, 2)};
  memseg::SegmentTable::Made made;
  jetty::Jetties jetties{1};
  jetty::Groups groups;
  jetty::Addressees addressees{jetties, groups};
  jetty::Staging staging{segments.guard()};
  jetty::Executor executor{segments, jetties, addressees, staging};
  Addresses addresses;
  KeptEvents events;
  Refusals refusals{executor, addresses, events};
  uint32_t guessed = 0;
};

TEST_CASE("refusals: each wrong token raises an event, and more than a few in a second a limit") {
  Guarded owner;
  for (uint32_t i = 0; i < tolerated; ++i) REQUIRE_FALSE(owner.guess(guesser));
  CHECK(owner.count(EventKind::bad_tokens) == tolerated);
  CHECK(owner.count(EventKind::guessing) == 0);
  CHECK(owner.guess(guesser) == owner.now + 100ms);
  CHECK(owner.count(EventKind::bad_tokens) == tolerated + 1);
  CHECK(owner.count(EventKind::guessing) == 1);
  for (const Event& event : owner.events.events) CHECK(event.peer == guesser);
}

TEST_CASE("refusals: peers at one address count together, unknown senders too") {
  Guarded owner;
  for (uint32_t i = 0; i < tolerated; ++i) {
    REQUIRE_FALSE(owner.guess(guesser));
    REQUIRE_FALSE(owner.guess(PeerId{}));
  }
  CHECK_FALSE(owner.guess(elsewhere));
  CHECK(owner.guess(neighbour));
  CHECK(owner.events.events.back().peer == neighbour);
  CHECK(owner.guess(PeerId{}));
}

TEST_CASE("refusals: a token that once was valid is reported, but is not a guess") {
  Guarded owner;
  const TokenValue old = owner.made.token.value;
  REQUIRE(owner.segments.rotate(owner.made.segment));
  REQUIRE(owner.segments.retire(owner.made.segment));
  for (uint32_t i = 0; i < 10 * tolerated; ++i) REQUIRE_FALSE(owner.note(guesser, old));
  CHECK(owner.count(EventKind::bad_tokens) == 10 * tolerated);
  CHECK(owner.events.events.size() == 10 * tolerated);
}

TEST_CASE("refusals: a request with the right token was refused for another reason: no event") {
  Guarded owner;
  for (uint32_t i = 0; i < 10 * tolerated; ++i) {
    REQUIRE_FALSE(owner.note(guesser, owner.made.token.value));
  }
  CHECK(owner.events.events.empty());
}

}  // namespace
}  // namespace urma::test
