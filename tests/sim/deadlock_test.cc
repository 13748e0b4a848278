// SPDX-License-Identifier: Apache-2.0
// No deadlock: answers leave ahead of requests and need nothing that requests hold, a receiver that
// is not ready holds nothing of its sender's, and a queue that is not polled stops only posts to it
// (docs/reliability.md).

#include <string>

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Polls all completions, and posts each buffer again in which a message came.
struct Drained {
  size_t ok = 0;
  size_t failed = 0;
  size_t arrived = 0;
};
void drain(SimHosts::Host& host, Drained& into) {
  std::array<Completion, 64> out;
  for (size_t count = out.size(); count == out.size();) {
    count = host.jetty.poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      const bool arrival = completion.operation == Operation::receive;
      (arrival ? into.arrived : completion.ok() ? into.ok : into.failed) += 1;
      if (arrival) REQUIRE(host.jetty.receive(host.segment.bytes().first(256), completion.tag));
    }
  }
}

TEST_CASE(
    "D1: two hosts flood each other with sends while neither has a buffer; then all complete") {
  for (const char* options : {"delay=20us", "delay=20us&loss=2%"}) {
    SimHosts hosts(std::string("d1-") + options);
    constexpr size_t works = 500;
    auto a = hosts.start(options, {.berths = works, .receives = 4}, {.operation_timeout = 60s});
    auto b = hosts.start(options, {.berths = works, .receives = 4}, {.operation_timeout = 60s});
    const Imported to_b = a.device.import(b.line).value();
    const Imported to_a = b.device.import(a.line).value();
    const auto bytes = bytes_like(200);
    REQUIRE(a.jetty.post(std::vector<Work>(works, send(bytes, to_b.jetty))) == works);
    REQUIRE(b.jetty.post(std::vector<Work>(works, send(bytes, to_a.jetty))) == works);
    hosts.run_for(50ms);  // many "receiver not ready" in both directions
    CHECK(a.device.stats().value().receiver_not_ready > 0);
    CHECK(b.device.stats().value().receiver_not_ready > 0);
    // One-sided works overtake the sends.
    Jetty other = a.device.jetty({.berths = 4}).value();
    CHECK(status_of(other, write(bytes, to_b.segment, 4096), 20ms) == Status::ok);
    for (uint64_t tag = 0; tag < 4; ++tag) {
      REQUIRE(a.jetty.receive(a.segment.bytes().first(256), tag));
      REQUIRE(b.jetty.receive(b.segment.bytes().first(256), tag));
    }
    Drained at_a, at_b;
    const Time begun = hosts.now();
    while (at_a.ok + at_b.ok < 2 * works && hosts.now() - begun < 30s) {
      drain(a, at_a);
      drain(b, at_b);
      hosts.run_for(50us);
    }
    CHECK(at_a.ok == works);
    CHECK(at_b.ok == works);
    CHECK(at_a.failed + at_b.failed == 0);
    CHECK(at_a.arrived == works);
    CHECK(at_b.arrived == works);
  }
}

TEST_CASE(
    "D2: two hosts read as much as they may from each other: answers do not wait for requests") {
  SimHosts hosts("d2");
  constexpr size_t works = 300;
  auto a = hosts.start("delay=20us&loss=1%", {.berths = works, .receives = 4});
  auto b = hosts.start("delay=20us&loss=1%", {.berths = works, .receives = 4});
  const Imported to_b = a.device.import(b.line).value();
  const Imported to_a = b.device.import(a.line).value();
  std::vector<std::byte> for_a(1 << 20), for_b(1 << 20);
  std::vector<Work> from_a, from_b;
  // Each host reads what the other one writes back at the same time, more than any window holds.
  for (size_t i = 0; i < works; ++i) {
    const size_t at = i % 8 * 65'536;
    from_a.push_back(i % 2 == 0 ? read(std::span(for_a).subspan(at, 65'536), to_b.segment, at)
                                : write(std::span(for_a).subspan(at, 65'536), to_b.segment, at));
    from_b.push_back(i % 2 == 0 ? read(std::span(for_b).subspan(at, 65'536), to_a.segment, at)
                                : write(std::span(for_b).subspan(at, 65'536), to_a.segment, at));
  }
  REQUIRE(a.jetty.post(from_a) == works);
  REQUIRE(b.jetty.post(from_b) == works);
  Drained at_a, at_b;
  const Time begun = hosts.now();
  while (at_a.ok + at_b.ok + at_a.failed + at_b.failed < 2 * works && hosts.now() - begun < 60s) {
    drain(a, at_a);
    drain(b, at_b);
    hosts.run_for(100us);
  }
  CHECK(at_a.ok == works);
  CHECK(at_b.ok == works);
}

TEST_CASE("D6, R12: an application that never polls blocks its own posts, and no others") {
  SimHosts hosts("d6");
  constexpr uint32_t berths = 16;
  auto here = hosts.start("delay=10us", {.berths = berths, .receives = 4});
  auto there = hosts.start("delay=10us", {.berths = 64, .receives = 64});
  const Imported target = here.device.import(there.line).value();
  const auto bytes = bytes_like(100);
  // R12: if its completion queue is full, no further work is accepted.
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    taken += here.jetty.post(write(bytes, target.segment));
    hosts.run_for(20us);
  }
  CHECK(taken == berths);
  CHECK(here.jetty.vacant_berths() == 0);
  // Another queue of the same device, over the same channel, makes progress.
  Jetty other = here.device.jetty({.berths = 4}).value();
  for (int i = 0; i < 100; ++i) {
    REQUIRE(status_of(other, write(bytes, target.segment, 4096), 10ms) == Status::ok);
  }
  // No completion was lost.
  Drained own;
  drain(here, own);
  CHECK(own.ok == berths);
  CHECK(here.jetty.vacant_berths() == berths);

  // A receiver that does not poll delays the works to it, and not other works.
  Jetty sender = here.device.jetty({.berths = 256}).value();
  for (uint64_t tag = 0; tag < 64; ++tag)
    REQUIRE(there.jetty.receive(there.segment.bytes().first(256), tag));
  REQUIRE(sender.post(std::vector<Work>(256, send(bytes, target.jetty))) == 256);
  hosts.run_for(20ms);
  std::array<Completion, 256> out;
  CHECK(sender.poll(out) == 64);
  CHECK(status_of(other, write(bytes, target.segment, 4096), 10ms) == Status::ok);
  Drained arrivals;
  size_t sent = 64;
  for (const Time begun = hosts.now(); sent < 256 && hosts.now() - begun < 1s;) {
    drain(there, arrivals);
    hosts.run_for(100us);
    sent += sender.poll(out);
  }
  CHECK(sent == 256);
}

TEST_CASE("R11: while 16 peers send to one slow receiver, one-sided works to it are not delayed") {
  SimHosts hosts("r11");
  constexpr size_t senders = 16;
  constexpr size_t each = 20;
  auto receiver = hosts.start("delay=20us", {.berths = 8, .receives = 4});
  for (uint64_t tag = 0; tag < 4; ++tag) {
    REQUIRE(receiver.jetty.receive(receiver.segment.bytes().first(256), tag));
  }
  const auto bytes = bytes_like(200);
  std::vector<SimHosts::Host> hosts_of;
  for (size_t i = 0; i < senders; ++i) {
    hosts_of.push_back(hosts.start("delay=20us", {.berths = each}, {.operation_timeout = 30s}));
    const Imported target = hosts_of.back().device.import(receiver.line).value();
    REQUIRE(hosts_of.back().jetty.post(std::vector<Work>(each, send(bytes, target.jetty))) == each);
  }
  auto beside = hosts.start("delay=20us", {.berths = 4});
  const Imported target = beside.device.import(receiver.line).value();
  Drained arrived;
  size_t ended = 0;
  size_t asides = 0;
  const Time begun = hosts.now();
  while (ended < senders * each && hosts.now() - begun < 20s) {
    hosts.run_for(1ms);  // the time that the receiver takes for four messages
    drain(receiver, arrived);
    for (auto& sender : hosts_of) {
      Drained done;
      drain(sender, done);
      REQUIRE(done.failed == 0);
      ended += done.ok;
    }
    REQUIRE(status_of(beside.jetty, write(bytes, target.segment, 4096), 1ms) == Status::ok);
    ++asides;
  }
  CHECK(ended == senders * each);
  CHECK(arrived.arrived == senders * each);
  CHECK(asides > 10);
}

}  // namespace
}  // namespace urma::test
