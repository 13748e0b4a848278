// SPDX-License-Identifier: Apache-2.0
// Event channels: one descriptor for several queues, for chosen completions only, and for events
// that are not completions.

#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr std::span<const std::byte> nothing;

// Arms the queue, and first takes the completions that are still there.
void arm(Jetty& jetty, Wake wake = Wake::any) {
  std::array<Completion, 16> out;
  while (!jetty.arm(wake)) REQUIRE(jetty.poll(out) > 0);
}

// The Jetties of one side, attached to one channel, and a peer that sends to them.
struct Party {
  explicit Party(std::string_view driver, size_t count, Threads threads = Threads::automatic)
      : medium(driver),
        owner(Side::open(medium.text(), {.threads = threads})),
        user(Side::open(medium.text())),
        events(owner.device.jfce().value()) {
    for (size_t i = 0; i < count; ++i) {
      jetties.push_back(owner.device.jetty({.berths = 4, .receives = 64}).value());
      targets.push_back(user.device.import(jetties.back().descriptor()).value().jetty);
      events.attach(jetties.back(), i).value();
    }
  }
  void tell(size_t which, uint64_t value, bool solicited = false) {
    Work work = send(nothing, targets[which]).immediate(value);
    if (solicited) work.solicited();
    REQUIRE(run_one(user.jetty, work).ok());
  }

  Medium medium;
  Side owner;
  Side user;
  Jfce events;
  std::vector<Jetty> jetties;
  std::vector<RemoteJetty> targets;
};

TEST_CASE("one descriptor reports which of many queues have completions") {
  for (const std::string_view driver : media) {
    for (const Threads threads : {Threads::automatic, Threads::served}) {
      Party party(driver, 8, threads);
      std::vector<std::byte> buffers(8 * 8);
      for (Jetty& jetty : party.jetties) {
        for (int i = 0; i < 8; ++i) REQUIRE(jetty.receive(std::span(buffers).first(8)));
        arm(jetty);
      }
      CHECK_FALSE(readable(party.events.fd(), 0));
      CHECK(party.events.wait(0ms).empty());
      for (const size_t which : {3u, 5u, 3u}) party.tell(which, which);
      REQUIRE(readable(party.events.fd()));
      std::map<uint64_t, int> told;
      while (told.size() < 2) {
        for (const uint64_t tag : party.events.wait(patience)) ++told[tag];
      }
      // Each queue is reported once, and not again before it is armed.
      CHECK(told == std::map<uint64_t, int>{{3, 1}, {5, 1}});
      CHECK_FALSE(readable(party.events.fd(), 0));
      CHECK(collect(party.jetties[3], 2).size() == 2);
      CHECK(collect(party.jetties[5], 1).at(0).immediate == 5);
    }
  }
}

TEST_CASE("no wake-up is lost at a channel of many queues") {
  constexpr uint64_t messages = 3'000;
  constexpr size_t queues = 5;
  for (const std::string_view driver : media) {
    Party party(driver, queues);
    std::vector<std::byte> buffer(8);
    for (Jetty& jetty : party.jetties) {
      while (jetty.receive(buffer)) {
      }
    }
    std::thread sender([&] {
      Jetty jetty = party.user.device.jetty().value();
      for (uint64_t i = 0; i < messages; ++i) {
        if (jetty.post(send(nothing, party.targets[i % queues]).immediate(i)) != 1) return;
        if (collect(jetty, 1).size() != 1) return;
        if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 300));
      }
    });
    std::array<Completion, 16> out;
    std::array<uint64_t, 2> tags;
    uint64_t arrived = 0;
    const auto take = [&](Jetty& jetty) {
      do {
        while (const size_t count = jetty.poll(out)) {
          arrived += count;
          for (size_t i = 0; i < count; ++i) REQUIRE(jetty.receive(buffer));
        }
      } while (!jetty.arm());
    };
    for (Jetty& jetty : party.jetties) take(jetty);
    while (arrived < messages && readable(party.events.fd())) {
      // More queues may be ready than fit into one `take`.
      while (const size_t count = party.events.take(tags)) {
        for (size_t i = 0; i < count; ++i) take(party.jetties[tags[i]]);
      }
    }
    sender.join();
    CHECK(arrived == messages);
  }
}

TEST_CASE(
    "a channel serves queues of several devices, and is destroyed after them or before them") {
  Medium window("cxl:");
  Side near = Side::open(window.text());
  Side far = Side::open("udp:");
  std::optional<Jfce> events(near.device.jfce().value());
  events->attach(near.jetty, 1).value();
  events->attach(far.jetty, 2).value();
  arm(near.jetty);
  arm(far.jetty);
  // The channel may wake spuriously: the completion was polled just before the queue was armed.
  const auto told = [&](uint64_t wanted) {
    for (;;) {
      const auto tags = events->wait(patience);
      if (tags.empty()) return false;
      if (tags.front() == wanted) return true;
      arm(tags.front() == 1 ? near.jetty : far.jetty);
    }
  };
  for (Side* side : {&far, &near}) {
    REQUIRE(side->jetty.post(send(nothing, side->jetty.local())) == 1);
    // The send waits, because the receiver has posted no buffer yet. This buffer takes it.
    std::array<std::byte, 8> buffer;
    REQUIRE(side->jetty.receive(buffer));
    CHECK(told(side == &far ? 2 : 1));
    collect(side->jetty, 2);
    arm(side->jetty);
  }
  near.device.close();
  CHECK(told(1));
  { const Jetty gone = std::move(near.jetty); }
  far.device.close();
  { const Jetty gone = std::move(far.jetty); }
  // The tag of a destroyed queue is not reported.
  CHECK(events->wait(0ms).empty());
  Side last = Side::open("udp:");
  Jfce again = last.device.jfce().value();
  again.attach(last.jetty, 3).value();
  arm(last.jetty);
  events.emplace(std::move(again));
  events.reset();
  REQUIRE(last.jetty.post(send(nothing, last.jetty.local())) == 1);
  CHECK(collect(last.jetty, 1, 50ms).empty());
}

TEST_CASE("a thread that takes some of the reported tags learns that there are more") {
  Party party("udp:", 5);
  std::vector<std::byte> buffer(8);
  for (Jetty& jetty : party.jetties) {
    REQUIRE(jetty.receive(buffer));
    arm(jetty);
  }
  for (size_t i = 0; i < 5; ++i) party.tell(i, i);
  std::array<uint64_t, 2> two;
  size_t taken = 0;
  for (int round = 0; round < 50 && taken < 5; ++round) {
    REQUIRE(readable(party.events.fd()));
    taken += party.events.take(two);
  }
  CHECK(taken == 5);
}

TEST_CASE("a queue is attached once, and has no other descriptor") {
  Side side = Side::open("udp:");
  Jfce events = side.device.jfce().value();
  Jetty second = side.device.jetty().value();
  REQUIRE(second.fd().ok());
  CHECK(events.attach(second, 1).status() == Status::invalid_argument);
  REQUIRE(events.attach(side.jetty, 1).ok());
  CHECK(events.attach(side.jetty, 2).status() == Status::invalid_argument);
  CHECK(side.jetty.fd().status() == Status::invalid_argument);
  Side inlined = Side::open("udp:", {.threads = Threads::inlined});
  CHECK(events.attach(inlined.jetty, 1).status() == Status::unsupported);
  side.device.close();
  Jfc jfc = inlined.device.jfc(8).value();
  CHECK(side.device.jfce().status() == Status::closed);
}

TEST_CASE("a thread that sleeps for solicited completions is woken by these, and by failed works") {
  for (const std::string_view driver : media) {
    Party party(driver, 1);
    Jetty& jetty = party.jetties[0];
    std::vector<std::byte> buffer(64);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 4; ++i) REQUIRE(jetty.receive(buffer));
      arm(jetty, Wake::solicited);
      party.tell(0, 1);
      party.tell(0, 2);
      CHECK_FALSE(readable(party.events.fd(), 2));
      party.tell(0, 3, true);
      REQUIRE(readable(party.events.fd()));
      CHECK(party.events.wait(0ms).size() == 1);
      const auto arrived = collect(jetty, 3);
      REQUIRE(arrived.size() == 3);
      for (uint64_t i = 0; i < 3; ++i) {
        CHECK(arrived[i].immediate == i + 1);
        CHECK(arrived[i].solicited == (i == 2));
      }
      // The message is too long for its buffer.
      arm(jetty, Wake::solicited);
      const auto bytes = bytes_like(100, 1);
      CHECK(run_one(party.user.jetty, send(bytes, party.targets[0])).status ==
            Status::remote_unsupported);
      REQUIRE(readable(party.events.fd()));
      CHECK(party.events.wait(0ms).size() == 1);
      CHECK(collect(jetty, 1).at(0).status == Status::receive_too_small);
    }
  }
}

// Waits until an event of this kind comes. Returns how many such events it stands for.
uint64_t told(Device& device, EventKind kind, Event& last) {
  const int descriptor = device.events_fd().value();
  std::array<Event, 4> out;
  while (readable(descriptor, 5'000)) {
    const size_t count = device.events(out);
    for (size_t i = 0; i < count; ++i) {
      if (out[i].kind == kind) return last = out[i], out[i].count;
    }
  }
  return 0;
}

TEST_CASE("events report a peer that leaves, wrong tokens, a Jetty in error, and close") {
  for (const std::string_view driver : media) {
    INFO(driver);
    const Medium medium(driver);
    Side owner = Side::open(medium.text());
    Event event;
    {
      Side user = Side::open(medium.text());
      const Imported remote = user.device.import(owner.line()).value();
      const auto bytes = bytes_like(200, 1);
      REQUIRE(run_one(user.jetty, write(bytes, remote.segment)).ok());
      RemoteSegment wrong = remote.segment;
      wrong.token = TokenValue(number(wrong.token) ^ 1);
      REQUIRE(user.jetty.post(
                  {write(bytes, wrong), read(std::span<std::byte>(), remote.segment)}) == 2);
      REQUIRE(collect(user.jetty, 2).at(0).status == Status::remote_access);
      CHECK(told(owner.device, EventKind::bad_tokens, event) == 1);
      CHECK(event.from == user.device.endpoint());
      // Access out of bounds is not an event, because its initiator has the token.
      REQUIRE(run_one(user.jetty, write(bytes, remote.segment, remote.segment.bytes - 1)).status !=
              Status::ok);
      owner.jetty.flush().value();
      REQUIRE(
          run_one(user.jetty, write(bytes, remote.segment).to(remote.jetty).immediate(1)).status ==
          Status::remote_access);
      CHECK(told(owner.device, EventKind::jetty_error, event) == 1);
      CHECK(event.jetty == owner.jetty.id());
    }
    CHECK(told(owner.device, EventKind::peer_left, event) == 1);
    std::array<Event, 2> out;
    CHECK(owner.device.events(out) == 0);
    const int descriptor = owner.device.events_fd().value();
    owner.device.close();
    REQUIRE(readable(descriptor));
    REQUIRE(owner.device.events(out) == 1);
    CHECK(out[0].kind == EventKind::closed);
    CHECK(owner.device.events(out) == 1);
    CHECK(std::string_view(name(out[0].kind)) == "closed");
  }
}

}  // namespace
}  // namespace urma::test
