// SPDX-License-Identifier: Apache-2.0
// Messages to Jetties that take their buffers from one receive queue.

#include <map>
#include <optional>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// A host whose Jetties share a receive queue, and one that sends to them.
struct Shared {
  SimHosts hosts;
  SimHosts::Host here;
  SimHosts::Host there;
  std::optional<Jfr> jfr;
  std::vector<Jetty> jetties;
  std::vector<RemoteJetty> targets;

  explicit Shared(const std::string& name, uint32_t receives = 8, const std::string& path = "")
      : hosts(name),
        here(hosts.start(path)),
        there(hosts.start(path)),
        jfr(there.device.jfr({.receives = receives}).value()) {
    for (int i = 0; i < 2; ++i) {
      jetties.push_back(there.device.jetty({.berths = 16, .receives_from = &*jfr}).value());
      targets.push_back(here.device.import(jetties.back().descriptor()).value().jetty);
    }
  }
  Imported memory() { return here.device.import(there.segment.descriptor()).value(); }
};

std::vector<Completion> arrivals(Jfr& jfr, size_t count, Duration limit = 1s) {
  std::vector<Completion> out;
  while (out.size() < count) {
    const auto some = jfr.wait(limit);
    if (some.empty()) break;
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

TEST_CASE("two Jetties share a receive queue: despite loss each message arrives once, whole") {
  const std::string path = "loss=5%&reorder=5%&mtu=1024";
  Shared shared("jfr-loss", 8, path);
  auto second = shared.hosts.start(path);
  constexpr uint64_t messages = 300;  // from each sender
  std::vector<std::vector<std::byte>> inbox(8, std::vector<std::byte>(8000));
  for (uint64_t tag = 0; tag < inbox.size(); ++tag) REQUIRE(shared.jfr->receive(inbox[tag], tag));
  CHECK(shared.jfr->vacant_receives() == 0);

  struct Sender {
    SimHosts::Host* host;
    RemoteJetty target;
    JettyId id;
    uint64_t posted = 0;
    uint64_t done = 0;
    uint64_t arrived = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Sender> senders;
  senders.push_back({&shared.here, shared.targets[0], shared.jetties[0].id(), 0, 0, 0, {}});
  const RemoteJetty other = second.device.import(shared.jetties[1].descriptor()).value().jetty;
  senders.push_back({&second, other, shared.jetties[1].id(), 0, 0, 0, {}});
  senders[0].bytes = bytes_like(5000, 1);
  senders[1].bytes = bytes_like(7000, 2);

  const auto send_and_poll = [](Sender& sender) {
    while (sender.posted < messages &&
           sender.host->jetty.post(send(sender.bytes, sender.target).immediate(sender.posted)) ==
               1) {
      ++sender.posted;
    }
    std::array<Completion, 16> out;
    for (size_t i = 0, count = sender.host->jetty.poll(out); i < count; ++i) {
      REQUIRE(out[i].ok());
      ++sender.done;
    }
  };
  std::map<uint64_t, uint32_t> seen;
  const Time until = shared.hosts.now() + 10s;
  while ((senders[0].done < messages || senders[1].done < messages) && shared.hosts.now() < until) {
    for (Sender& sender : senders) send_and_poll(sender);
    for (const Completion& arrival : shared.jfr->wait(100us)) {
      REQUIRE(arrival.ok());
      const size_t which = arrival.jetty == senders[0].id ? 0 : 1;
      REQUIRE(arrival.jetty == senders[which].id);
      CHECK(arrival.from_jetty == senders[which].host->jetty.id());
      CHECK(arrival.bytes == senders[which].bytes.size());
      CHECK(same(std::span(inbox[arrival.tag]).first(arrival.bytes), senders[which].bytes));
      CHECK(++seen[which << 32 | arrival.immediate] == 1);
      ++senders[which].arrived;
      REQUIRE(shared.jfr->receive(inbox[arrival.tag], arrival.tag));
    }
  }
  for (const Sender& sender : senders) {
    CHECK(sender.done == messages);
    CHECK(sender.arrived == messages);
  }
  // The Jetties' own completion queues report only works that the Jetties have posted.
  for (Jetty& jetty : shared.jetties) CHECK(jetty.wait(1ms).empty());
}

TEST_CASE(
    "senders wait while the shared queue is empty, and the first message gets the next buffer") {
  Shared shared("jfr-empty");
  const auto bytes = bytes_like(3000);
  REQUIRE(shared.here.jetty.post(
              {send(bytes, shared.targets[0]), send(bytes, shared.targets[1])}) == 2);
  CHECK(shared.here.jetty.wait(3s).empty());  // longer than the operation time-out
  CHECK(shared.there.device.stats().value().not_ready > 100);
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 1; tag <= 2; ++tag) {
    REQUIRE(shared.jfr->receive(inbox, tag));
    CHECK(collect(shared.here.jetty, 1).at(0).ok());
    CHECK(arrivals(*shared.jfr, 1).at(0).tag == tag);
  }
}

TEST_CASE("immediates to Jetties that share a receive queue share its permits") {
  Shared shared("jfr-permits", 2);
  const auto bytes = bytes_like(10);
  const Imported memory = shared.memory();
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE(shared.here.jetty.post(
                write(bytes, memory.segment, i * 10).to(shared.targets[i % 2]).immediate(i)) == 1);
  }
  CHECK(collect(shared.here.jetty, 4, 100ms).size() == 2);
  const auto first = arrivals(*shared.jfr, 2);
  REQUIRE(first.size() == 2);
  CHECK(collect(shared.here.jetty, 2).size() == 2);
  const auto second = arrivals(*shared.jfr, 2);
  REQUIRE(second.size() == 2);
  for (const auto* some : {&first, &second}) {
    for (const Completion& arrival : *some) {
      CHECK(arrival.jetty == shared.jetties[arrival.immediate % 2].id());
    }
  }
}

TEST_CASE("a receive queue can itself be the target of messages") {
  Shared shared("jfr-target");
  const RemoteJetty target = shared.here.device.import(shared.jfr->descriptor()).value().jetty;
  const auto bytes = bytes_like(100);
  std::vector<std::byte> inbox(100);
  REQUIRE(shared.jfr->receive(inbox, 5));
  REQUIRE(shared.here.jetty.post({send(bytes, target),
                                  write(bytes, shared.memory().segment).to(target).immediate(6)}) ==
          2);
  const auto done = collect(shared.here.jetty, 2);
  REQUIRE(done.size() == 2);
  for (const Completion& completion : done) CHECK(completion.ok());
  const auto came = arrivals(*shared.jfr, 2);
  REQUIRE(came.size() == 2);
  for (const Completion& arrival : came) CHECK(arrival.jetty == shared.jfr->id());
  CHECK(inbox == bytes);
  // The receive queue has its own token: the token of a Jetty is not valid here.
  RemoteJetty forged = target;
  forged.token = shared.targets[0].token;
  CHECK(status_of(shared.here.jetty, send(bytes, forged), 1s) == Status::remote_access);
}

// Sends the first packets of a long message to the first of the Jetties.
std::vector<std::byte> begin_message(Shared& shared, std::vector<std::byte>& inbox) {
  const auto bytes = bytes_like(64 * 1024);
  inbox.assign(64 * 1024, std::byte{});
  REQUIRE(shared.jfr->receive(inbox, 1));
  REQUIRE(status_of(shared.here.jetty, write(std::span(bytes).first(8), shared.memory().segment),
                    1s) == Status::ok);
  REQUIRE(shared.here.jetty.post(send(bytes, shared.targets[0])) == 1);
  while (inbox[0] != bytes[0] || inbox[1] != bytes[1]) shared.hosts.run_for(1us);
  REQUIRE(inbox.back() == std::byte{});
  return bytes;
}

TEST_CASE("a Jetty destroyed while a message arrives returns the buffer to the shared queue") {
  for (const bool destroyed : {true, false}) {
    Shared shared(destroyed ? "jfr-destroyed" : "jfr-flushed", 1, "delay=100us&mtu=1024");
    std::vector<std::byte> inbox;
    const auto bytes = begin_message(shared, inbox);
    if (destroyed) {
      shared.jetties.erase(shared.jetties.begin());
    } else {
      shared.jetties[0].flush().value();
    }
    const auto before = inbox;
    CHECK(only_status(shared.here.jetty, 1s) == Status::remote_access);
    CHECK(inbox == before);
    CHECK(shared.jfr->wait(1ms).empty());  // nothing is flushed: the buffer stays posted
    CHECK(status_of(shared.here.jetty, send(bytes, shared.targets[1]), 1s) == Status::ok);
    const auto came = arrivals(*shared.jfr, 1);
    REQUIRE(came.size() == 1);
    CHECK(came[0].tag == 1);
    CHECK(inbox == bytes);
    if (destroyed) continue;
    shared.jetties[0].reset().value();
    REQUIRE(shared.jfr->receive(inbox, 2));
    CHECK(status_of(shared.here.jetty, send(bytes, shared.targets[0]), 1s) == Status::ok);
    CHECK(arrivals(*shared.jfr, 1).at(0).tag == 2);
  }
}

TEST_CASE("after a receive queue is destroyed, no further part of an arriving message is placed") {
  Shared shared("jfr-gone", 4, "delay=100us&mtu=1024");
  std::vector<std::byte> inbox;
  const auto bytes = begin_message(shared, inbox);
  shared.jfr.reset();
  std::fill(inbox.begin(), inbox.end(), std::byte{0xee});
  CHECK(only_status(shared.here.jetty, 1s) == Status::remote_unsupported);
  CHECK(std::ranges::all_of(inbox, [](std::byte byte) { return byte == std::byte{0xee}; }));

  // Its Jetties behave as if they had no receives, even when another queue is created.
  Jfr next = shared.there.device.jfr({.receives = 4}).value();
  REQUIRE(next.receive(inbox, 7));
  const Imported memory = shared.memory();
  for (const RemoteJetty& target : shared.targets) {
    REQUIRE(shared.here.jetty.post(
                {send(bytes, target), write(bytes, memory.segment).to(target).immediate(1)}) == 2);
    for (const Completion& completion : collect(shared.here.jetty, 2)) {
      CHECK(completion.status == Status::remote_unsupported);
    }
  }
  CHECK(next.wait(1ms).empty());
  // Works that these Jetties post still complete.
  const Imported back = shared.there.device.import(shared.here.line).value();
  REQUIRE(shared.jetties[0].post(write(bytes, back.segment)) == 1);
  CHECK(only_status(shared.jetties[0], 1s) == Status::ok);
}

TEST_CASE("a destroyed receive queue completes its buffers into its shared completion queue") {
  Shared shared("jfr-jfc");
  Jfc jfc = shared.there.device.jfc(64).value();
  std::vector<std::byte> inbox(100);
  const auto bytes = bytes_like(100);
  {
    Jfr jfr = shared.there.device.jfr({.receives = 4, .completions = &jfc}).value();
    Jetty jetty =
        shared.there.device.jetty({.berths = 4, .completions = &jfc, .receives_from = &jfr})
            .value();
    for (uint64_t tag = 1; tag <= 3; ++tag) REQUIRE(jfr.receive(inbox, tag));
    const RemoteJetty target = shared.here.device.import(jetty.descriptor()).value().jetty;
    REQUIRE(status_of(shared.here.jetty, send(bytes, target), 1s) == Status::ok);
  }
  std::vector<Completion> out(8);
  REQUIRE(jfc.poll(out) == 3);
  CHECK(out[0].ok());
  for (uint64_t i = 0; i < 3; ++i) {
    CHECK(out[i].tag == i + 1);
    if (i > 0) CHECK(out[i].status == Status::flushed);
  }
  // All entries that the destroyed queue and Jetty had reserved are free again.
  Jetty all = shared.there.device.jetty({.berths = 64, .completions = &jfc}).value();
}

TEST_CASE("unregister removes the buffers in its memory from a shared receive queue") {
  Shared shared("jfr-unregister", 4, "delay=100us&mtu=1024");
  std::vector<std::byte> memory(64 * 1024);
  std::vector<std::byte> other(64 * 1024);
  Segment segment = shared.there.device.register_memory(memory).value();
  const auto bytes = begin_message(shared, memory);
  REQUIRE(shared.jfr->receive(memory, 2));
  REQUIRE(shared.jfr->receive(other, 3));
  segment.unregister().value();
  const auto before = memory;
  const auto flushed = arrivals(*shared.jfr, 2);
  REQUIRE(flushed.size() == 2);
  for (const Completion& completion : flushed) {
    CHECK(completion.status == Status::flushed);
    CHECK(completion.tag <= 2);
  }
  CHECK(only_status(shared.here.jetty, 1s) == Status::remote_access);
  CHECK(status_of(shared.here.jetty, send(bytes, shared.targets[1]), 1s) == Status::ok);
  CHECK(arrivals(*shared.jfr, 1).at(0).tag == 3);
  CHECK(memory == before);
  CHECK(other == bytes);
}

TEST_CASE("a buffer is returned to the shared queue if the sender dies while its message arrives") {
  Shared shared("jfr-sender", 1, "delay=100us&mtu=1024");
  std::vector<std::byte> inbox;
  const auto bytes = begin_message(shared, inbox);
  shared.hosts.kill(std::move(shared.here));
  shared.hosts.run_for(10s);
  CHECK(shared.jfr->wait(1ms).empty());
  auto second = shared.hosts.start();
  const RemoteJetty target = second.device.import(shared.jetties[1].descriptor()).value().jetty;
  CHECK(status_of(second.jetty, send(bytes, target), 1s) == Status::ok);
  CHECK(arrivals(*shared.jfr, 1).at(0).tag == 1);
  CHECK(inbox == bytes);
}

}  // namespace
}  // namespace urma::test
