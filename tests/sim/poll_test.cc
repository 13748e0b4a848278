// SPDX-License-Identifier: Apache-2.0
// Guarantees for an application that polls its own engine: nothing waits longer than necessary,
// although most of its polls end early.

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Polls both Jetties once in each microsecond until `jetty` has a completion. Returns how long that
// took.
Duration poll_until(SimHosts& hosts, SimHosts::Host& jetty, SimHosts::Host& other, Duration limit) {
  const Time begin = hosts.now();
  std::array<Completion, 4> out;
  while (hosts.now() - begin < limit) {
    if (jetty.jetty.poll(out) > 0) return hosts.now() - begin;
    (void)other.jetty.poll(out);
    hosts.run_for(1us);
  }
  return limit;
}

constexpr JettyOptions few_receives = {.berths = 64, .receives = 8};

struct Polled : SimPair {
  std::vector<std::byte> bytes = bytes_like(64);

  explicit Polled(const std::string& name)
      : SimPair(name, {.jetty = few_receives, .device = {.threads = Threads::inlined}},
                {.jetty = few_receives, .device = {.threads = Threads::inlined}}) {
    REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);  // makes the channel
    REQUIRE(poll_until(hosts, here, there, 10ms) < 10ms);
    // No answer or acknowledgement is due, and no timer is near.
    for (int i = 0; i < 2000; ++i) poll_once();
  }
  void poll_once() {
    std::array<Completion, 4> out;
    (void)here.jetty.poll(out);
    (void)there.jetty.poll(out);
    hosts.run_for(1us);
  }
};

TEST_CASE("a work that is posted between two empty polls leaves with the next poll") {
  Polled polled("poll-post");
  REQUIRE(polled.here.jetty.post(write(polled.bytes, polled.target.segment)) == 1);
  CHECK(poll_until(polled.hosts, polled.here, polled.there, 1ms) < 50us);
}

TEST_CASE("a peer that receives a notification and does not reply delays no answer") {
  Polled polled("poll-silent");
  for (int i = 0; i < 4; ++i) {
    REQUIRE(polled.here.jetty.post(
                write(polled.bytes, polled.target.segment).to(polled.target.jetty).immediate(1)) ==
            1);
    CHECK(poll_until(polled.hosts, polled.here, polled.there, 1ms) < 50us);
  }
}

TEST_CASE("a thread in wait is woken as early as one that polls, and not later than it asked") {
  Polled polled("poll-wait");
  auto served = polled.hosts.start();
  const Imported target = polled.here.device.import(served.line).value();
  REQUIRE(status_of(polled.here.jetty, write(polled.bytes, target.segment), 10ms) == Status::ok);
  for (const Duration limit : {Duration(300us), Duration(20ms)}) {
    const Time begin = polled.hosts.now();
    CHECK(polled.here.jetty.wait(limit).empty());
    CHECK(polled.hosts.now() - begin == limit);
  }
  const Time posted = polled.hosts.now();
  CHECK(status_of(polled.here.jetty, write(polled.bytes, target.segment), 200us) == Status::ok);
  CHECK(polled.hosts.now() - posted < 50us);
  // The thread is also woken for its own timers: a packet is lost, and is sent again while the
  // thread waits.
  const Endpoint from = polled.here.device.endpoint();
  const Endpoint to = served.device.endpoint();
  polled.hosts.network().faults.cut(from, to, true);
  const Time lost = polled.hosts.now();
  REQUIRE(polled.here.jetty.post(write(polled.bytes, target.segment)) == 1);
  CHECK(polled.here.jetty.wait(500us).empty());
  polled.hosts.network().faults.cut(from, to, false);
  CHECK(only_status(polled.here.jetty, 10ms) == Status::ok);
  CHECK(polled.hosts.now() - lost < 1400us);
}

TEST_CASE("in a conversation answers wait a limited time for replies") {
  Polled polled("poll-talk");
  const Imported back = polled.there.device.import(polled.here.line).value();
  const auto say = [&](SimHosts::Host& from, const Imported& to) {
    REQUIRE(from.jetty.post(write(polled.bytes, to.segment).to(to.jetty).immediate(1)) == 1);
  };
  std::array<Completion, 4> out;
  Duration longest{};
  Time asked = polled.hosts.now();
  say(polled.here, polled.target);
  for (int turns = 0; turns < 400;) {
    for (const Completion& one : std::span(out).first(polled.there.jetty.poll(out))) {
      if (one.operation == Operation::receive) say(polled.there, back);
    }
    for (const Completion& one : std::span(out).first(polled.here.jetty.poll(out))) {
      if (one.operation != Operation::receive) {
        longest = std::max(longest, polled.hosts.now() - asked);
        asked = polled.hosts.now();
        continue;
      }
      ++turns;
      say(polled.here, polled.target);
    }
    polled.hosts.run_for(1us);
    REQUIRE(polled.hosts.now() - asked < 10ms);
  }
  CHECK(longest < 200us);
  // The last message is answered, although no reply to it follows.
  const Time silent_since = polled.hosts.now();
  while (polled.here.jetty.vacant_berths() < 64) polled.poll_once();
  CHECK(polled.hosts.now() - silent_since < 30us);
  // There are fewer packets than three for each message: the message, its answer and its
  // acknowledgement.
  const Statistics all = polled.there.device.stats().value();
  CHECK(all.packets_sent < 400 + 400 / 4);
  CHECK(all.retransmitted == 0);
}

// One end of a conversation that waits for the completion of each message before it looks at what
// arrives. Polls once, and returns whether it replied.
bool waits_and_replies(SimHosts::Host& end, const Imported& to, std::span<const std::byte> bytes,
                       bool& waits, int& arrived) {
  std::array<Completion, 4> out;
  for (const Completion& one : std::span(out).first(end.jetty.poll(out))) {
    REQUIRE(one.ok());
    if (one.operation == Operation::receive) ++arrived;
    if (one.operation != Operation::receive) waits = false;
  }
  if (waits || arrived == 0) return false;
  --arrived;
  waits = true;
  REQUIRE(end.jetty.post(write(bytes, to.segment).to(to.jetty).immediate(1)) == 1);
  return true;
}

TEST_CASE("answers do not wait for the replies of a peer that waits for answers") {
  Polled polled("poll-turns");
  const Imported back = polled.there.device.import(polled.here.line).value();
  bool here_waits = false;
  bool there_waits = false;
  int at_here = 1;
  int at_there = 0;
  int turns = 0;
  const auto take_turns = [&](int wanted) {
    const Time begun = polled.hosts.now();
    while (turns < wanted) {
      if (waits_and_replies(polled.here, polled.target, polled.bytes, here_waits, at_here)) ++turns;
      (void)waits_and_replies(polled.there, back, polled.bytes, there_waits, at_there);
      polled.hosts.run_for(1us);
      REQUIRE(polled.hosts.now() - begun < 1s);
    }
    return polled.hosts.now() - begun;
  };
  (void)take_turns(20);
  const Duration ten = take_turns(30);
  INFO(ten.count() << " ns for 10 turns");
  // Answers that wait for 16 us make a turn five times as long.
  CHECK(ten < 10 * 8us);
  // A few of many turns find out whether the peer still waits.
  CHECK(take_turns(2030) < 2000 * 8us);
}

}  // namespace
}  // namespace urma::test
