// SPDX-License-Identifier: Apache-2.0
// Unreliable messages (ServiceMode::unreliable, UB: UNO), over a network that loses some of them.

#include <algorithm>
#include <map>

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr JettyOptions unreliable = {.berths = 256, .receives = 0, .mode = ServiceMode::unreliable};

// A sender of datagrams, and a receiver that does not know it.
struct Datagrams : SimPair {
  explicit Datagrams(const std::string& name, const std::string& network = "",
                     const JettyOptions& receiver = {.berths = 4, .receives = 512})
      : SimPair(name, {.network = network, .jetty = unreliable}, {.jetty = receiver}) {
    const uint32_t buffers = there.jetty.vacant_receives();
    received.resize(buffers, std::vector<std::byte>(4096));
    for (uint32_t i = 0; i < buffers; ++i) REQUIRE(there.jetty.receive(received[i], i));
  }

  // Returns the status of the work.
  Status post(const Work& work) {
    REQUIRE(here.jetty.post(work) == 1);
    return only_status(here.jetty, 10ms);
  }
  std::vector<Completion> arrivals() {
    hosts.run_for(1ms);
    std::vector<Completion> all;
    std::array<Completion, 16> out;
    while (const size_t count = there.jetty.poll(out)) {
      all.insert(all.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(count));
    }
    return all;
  }
  std::span<const std::byte> bytes(const Completion& arrival) const {
    return std::span(received[arrival.tag]).first(arrival.bytes);
  }
  Statistics stats() { return there.device.stats().value(); }

  std::vector<std::vector<std::byte>> received;
};

TEST_CASE("datagrams: they arrive complete, without a channel, from any sender") {
  Datagrams net("dg-plain");
  REQUIRE(net.here.device.datagram_bytes() == 4096);
  uint64_t sent = 0;
  for (const size_t size : {0u, 1u, 3u, 64u, 1000u, 1024u, 4093u, 4096u}) {
    const auto data = bytes_like(size, static_cast<unsigned>(size));
    CHECK(net.post(send(data, net.target.jetty).immediate(size + 7)) == Status::ok);
    const auto come = net.arrivals();
    REQUIRE(come.size() == 1);
    CHECK(come[0].ok());
    CHECK(come[0].bytes == size);
    CHECK(same(net.bytes(come[0]), data));
    CHECK(come[0].with_immediate);
    CHECK(come[0].immediate == size + 7);
    CHECK(come[0].from_jetty == net.here.jetty.id());
    // The receiver does not know the sender.
    CHECK_FALSE(come[0].from);
    ++sent;
  }
  CHECK(net.stats().datagrams_received == sent);
  CHECK(net.here.device.stats().value().datagrams_sent == sent);
  CHECK(net.stats().channels_made == 0);
  CHECK(net.stats().peers == net.here.device.stats().value().peers - 1);
  // A device knows the peers whose descriptors it has imported.
  const PeerId peer = net.there.device.import(net.here.line).value().segment.peer;
  CHECK(net.post(send(bytes_like(5), net.target.jetty)) == Status::ok);
  const auto come = net.arrivals();
  REQUIRE(come.size() == 1);
  CHECK(come[0].from == peer);
  CHECK(net.stats().channels_made == 0);
}

TEST_CASE("datagrams: some are lost, none is repeated, and all works end immediately") {
  Datagrams net("dg-loss", "loss=20%");
  std::map<uint64_t, int> come;
  for (uint64_t i = 0; i < 400; ++i) {
    auto data = bytes_like(100 + i, static_cast<unsigned>(i));
    const Time begun = net.hosts.now();
    CHECK(status_of(net.here.jetty, send(data, net.target.jetty).immediate(i), 1ms) == Status::ok);
    CHECK(net.hosts.now() - begun < 100us);
    // The application may use the memory again.
    std::ranges::fill(data, std::byte{0xee});
    for (const Completion& arrival : net.arrivals()) {
      ++come[arrival.immediate];
      CHECK(same(net.bytes(arrival),
                 bytes_like(100 + arrival.immediate, static_cast<unsigned>(arrival.immediate))));
    }
  }
  CHECK(come.size() > 400 * 6 / 10);
  CHECK(come.size() < 400 * 9 / 10);
  for (const auto& [number, times] : come) CHECK(times == 1);
  const Statistics sender = net.here.device.stats().value();
  CHECK(sender.retries + sender.retransmitted + sender.unknown == 0);
}

// Without a channel, no questions test whether a path works.
TEST_CASE("datagrams: a dead path loses its share of them without a channel, and none with one") {
  const std::string text = "paths():sim:dg-paths+sim:dg-paths+sim:dg-paths+sim:dg-paths";
  SimHosts hosts("dg-paths");
  SimHosts::Host here = SimHosts::start_at(text, unreliable, {});
  SimHosts::Host there = SimHosts::start_at(text, {.berths = 4, .receives = 512}, {});
  const Imported target = here.device.import(there.line).value();
  std::vector<std::byte> buffer(64);
  for (int i = 0; i < 512; ++i) REQUIRE(there.jetty.receive(buffer, 1));
  hosts.network().faults.cut(here.device.endpoints()[0], there.device.endpoints()[0], true);
  const std::vector<std::byte> data = bytes_like(5);
  const auto arrive = [&] {
    size_t come = 0;
    for (int i = 0; i < 200; ++i) {
      REQUIRE(status_of(here.jetty, send(data, target.jetty), 10ms) == Status::ok);
      come += there.jetty.wait(100us).size();
    }
    return come;
  };
  const size_t alone = arrive();
  CHECK(alone > 120);
  CHECK(alone < 180);
  Jetty reliable = here.device.jetty({.berths = 4}).value();
  REQUIRE(status_of(reliable, write(data, target.segment), 5s) == Status::ok);
  CHECK(arrive() == 200);
}

TEST_CASE(
    "datagrams: all that are posted leave, however many wait, also those of several buffers") {
  Datagrams net("dg-many");
  const auto first = bytes_like(700, 1);
  const auto second = bytes_like(900, 2);
  const std::array<Buffer, 2> both = {{{const_cast<std::byte*>(first.data()), first.size()},
                                       {const_cast<std::byte*>(second.data()), second.size()}}};
  for (uint32_t i = 0; i < 250; ++i) {
    REQUIRE(net.here.jetty.post(send(std::span(both), net.target.jetty).immediate(i)) == 1);
  }
  uint32_t ended = 0;
  while (ended < 250) {
    const auto completions = net.here.jetty.wait(10ms);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& one : completions) {
      CHECK(one.ok());
      ++ended;
    }
  }
  const auto come = net.arrivals();
  CHECK(come.size() == 250);
  for (const Completion& arrival : come) {
    CHECK(same(net.bytes(arrival).first(700), first));
    CHECK(same(net.bytes(arrival).subspan(700), second));
  }
}

TEST_CASE("datagrams: those that wait when their Jetty is flushed are flushed or have left") {
  Datagrams net("dg-flush");
  const std::vector<std::byte> data = bytes_like(4000);
  for (uint32_t i = 0; i < 250; ++i) {
    REQUIRE(net.here.jetty.post(send(data, net.target.jetty)) == 1);
  }
  REQUIRE(net.here.jetty.flush().ok());
  size_t left = 0;
  size_t flushed = 0;
  std::array<Completion, 300> out;
  for (size_t i = 0, count = net.here.jetty.poll(out); i < count; ++i) {
    left += out[i].ok();
    flushed += out[i].status == Status::flushed;
  }
  CHECK(left + flushed == 250);
  CHECK(net.arrivals().size() == left);
  CHECK(net.post(send(bytes_like(1), net.target.jetty)) == Status::flushed);
  REQUIRE(net.here.jetty.reset().ok());
  CHECK(net.post(send(bytes_like(1), net.target.jetty)) == Status::ok);
}

TEST_CASE(
    "datagrams: other works, ordered ones and too large ones are refused, and nothing is sent") {
  Datagrams net("dg-refuse");
  const RemoteSegment memory = net.here.device.import(net.there.line).value().segment;
  std::vector<std::byte> data(4097);
  CHECK(net.post(send(data, net.target.jetty)) == Status::bad_work);
  data.resize(8);
  CHECK(net.post(write(data, memory)) == Status::bad_work);
  CHECK(net.post(read(data, memory)) == Status::bad_work);
  CHECK(net.post(fetch_add(memory, 0, 1)) == Status::bad_work);
  CHECK(net.post(send(data, net.target.jetty).relaxed()) == Status::bad_work);
  CHECK(net.post(send(data, net.target.jetty).strong()) == Status::bad_work);
  CHECK(net.post(send(data, net.target.jetty).fenced()) == Status::bad_work);
  CHECK(net.post(send(data, net.target.jetty).fenced(Fence::reads)) == Status::bad_work);
  CHECK(net.post(send(data, {})) == Status::bad_work);
  CHECK(net.arrivals().empty());
  CHECK(net.here.device.stats().value().datagrams_sent == 0);
  JettyOptions chained = unreliable;
  chained.chain = true;
  const auto refused = net.here.device.jetty(chained);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == Status::invalid_argument);
  CHECK(refused.error().message.find("Fix: leave chain out") != std::string::npos);
}

TEST_CASE("datagrams: a Jetty without a receive drops and counts them") {
  Datagrams net("dg-none", "", {.berths = 4, .receives = 4});
  for (int i = 0; i < 10; ++i) CHECK(net.post(send(bytes_like(9), net.target.jetty)) == Status::ok);
  CHECK(net.arrivals().size() == 4);
  CHECK(net.stats().datagrams_dropped == 6);
  REQUIRE(net.there.jetty.receive(std::span(net.received[0]).first(8), 0));
  CHECK(net.post(send(bytes_like(9), net.target.jetty)) == Status::ok);
  const auto come = net.arrivals();
  REQUIRE(come.size() == 1);
  CHECK(come[0].status == Status::receive_too_small);
  CHECK(net.stats().datagrams_dropped == 7);
}

TEST_CASE("datagrams: a Jfr receives them") {
  Datagrams net("dg-jfr");
  Jfr jfr = net.there.device.jfr({.receives = 2}).value();
  Jetty sharer = net.there.device.jetty({.berths = 1, .receives_from = &jfr}).value();
  std::vector<std::byte> one(10);
  std::vector<std::byte> two(90);
  const std::array<Buffer, 2> both = {{{one.data(), 10}, {two.data(), 90}}};
  REQUIRE(jfr.receive(both, 5));
  const RemoteJetty target = net.here.device.import(sharer.descriptor()).value().jetty;
  const auto data = bytes_like(60);
  CHECK(net.post(send(data, target)) == Status::ok);
  net.hosts.run_for(1ms);
  std::array<Completion, 2> out;
  REQUIRE(jfr.poll(out) == 1);
  CHECK(out[0].tag == 5);
  CHECK(out[0].bytes == 60);
  CHECK(out[0].jetty == sharer.id());
  CHECK(same(one, std::span(data).first(10)));
  CHECK(same(std::span(two).first(50), std::span(data).subspan(10)));
}

TEST_CASE("datagrams: unknown senders that guess tokens are ignored, and known peers are not") {
  Datagrams net("dg-guess");
  SimHosts::Host known = net.hosts.start("", unreliable);
  REQUIRE(net.there.device.import(known.line).ok());
  const RemoteJetty from_known = known.device.import(net.there.line).value().jetty;
  RemoteJetty wrong = net.target.jetty;
  for (uint32_t i = 1; i <= 17; ++i) {
    wrong.token = TokenValue(number(net.target.jetty.token) ^ i);
    CHECK(net.post(send(bytes_like(5), wrong)) == Status::ok);
  }
  CHECK(net.arrivals().empty());
  CHECK(net.post(send(bytes_like(5), net.target.jetty)) == Status::ok);
  CHECK(net.arrivals().empty());
  CHECK(net.stats().ignored == 1);
  const std::vector<std::byte> data = bytes_like(5);
  CHECK(status_of(known.jetty, send(data, from_known), 1ms) == Status::ok);
  CHECK(net.arrivals().size() == 1);
  std::array<Event, 32> events;
  const auto told = std::span(events).first(net.there.device.events(events));
  CHECK(std::ranges::count(told, EventKind::bad_tokens, &Event::kind) > 0);
  CHECK(std::ranges::count(told, EventKind::guessing, &Event::kind) == 1);
  net.hosts.run_for(200ms);
  CHECK(net.post(send(bytes_like(5), net.target.jetty)) == Status::ok);
  CHECK(net.arrivals().size() == 1);
}

TEST_CASE("datagrams: those for an old incarnation do not reach the new one at its address") {
  Datagrams net("dg-lives", "", {.berths = 4, .receives = 16});
  CHECK(net.post(send(bytes_like(5), net.target.jetty)) == Status::ok);
  CHECK(net.arrivals().size() == 1);
  const Endpoint at = net.there.device.endpoint();
  net.hosts.kill(std::move(net.there));
  SimHosts::Host next =
      net.hosts.start("address=" + to_string(at.address), {.berths = 4, .receives = 16});
  std::vector<std::byte> buffer(64);
  REQUIRE(next.jetty.receive(buffer));
  CHECK(net.post(send(bytes_like(5), net.target.jetty)) == Status::ok);
  net.hosts.run_for(1ms);
  std::array<Completion, 1> out;
  CHECK(next.jetty.poll(out) == 0);
  const RemoteJetty again = net.here.device.import(next.line).value().jetty;
  CHECK(net.post(send(bytes_like(5), again)) == Status::ok);
  net.hosts.run_for(1ms);
  CHECK(next.jetty.poll(out) == 1);
}

// A datagram does not prove which peer has sent it.
TEST_CASE("datagrams: wrong tokens under a peer's name do not affect its channel") {
  SimHosts hosts("dg-forged");
  auto owner = hosts.start("address=fd00::31");
  auto honest = hosts.start("address=fd00::32");
  const Imported target = honest.device.import(owner.line).value();
  const auto data = bytes_like(8);
  REQUIRE(status_of(honest.jetty, write(data, target.segment), 1s) == Status::ok);
  // Another process at that address sends datagrams.
  Jetty forger = honest.device.jetty({.berths = 32, .mode = ServiceMode::unreliable}).value();
  for (uint32_t i = 1; i < 18; ++i) {
    RemoteJetty wrong = target.jetty;
    wrong.token = TokenValue(number(wrong.token) + i);
    REQUIRE(forger.post(send(data, wrong)) == 1);
  }
  hosts.run_for(1ms);
  REQUIRE(forger.post(send(data, target.jetty)) == 1);
  hosts.run_for(1ms);
  CHECK(owner.device.stats().value().ignored == 1);
  CHECK(status_of(honest.jetty, write(data, target.segment), 50ms) == Status::ok);
}

TEST_CASE("datagrams: unregistering memory flushes the datagrams that use it, and no others") {
  SimHosts hosts("dg-unregister");
  auto here = hosts.start("", {.berths = 256, .receives = 0, .mode = ServiceMode::unreliable});
  auto there = hosts.start("", {.berths = 4, .receives = 512});
  const RemoteJetty target = here.device.import(there.line).value().jetty;
  const auto data = bytes_like(100);
  std::vector<std::byte> memory(4096);
  Segment segment = here.device.register_memory(memory).value();
  const bool used = GENERATE(false, true);
  for (int i = 0; i < 199; ++i) REQUIRE(here.jetty.post(send(data, target)) == 1);
  const auto last = used ? std::span<const std::byte>(memory).first(100) : std::span(data);
  REQUIRE(here.jetty.post(send(last, target).tag(1)) == 1);
  REQUIRE(segment.unregister().ok());
  std::array<Completion, 256> out;
  size_t flushed = 0;
  size_t ended = 0;
  for (int i = 0; i < 100; ++i) {
    hosts.run_for(1ms);
    for (const Completion& one : std::span(out).first(here.jetty.poll(out))) {
      ++ended;
      flushed += one.status == Status::flushed;
      if (one.tag == 1) CHECK(one.status == (used ? Status::flushed : Status::ok));
    }
  }
  CHECK(ended == 200);
  CHECK((flushed > 0) == used);
}

}  // namespace
}  // namespace urma::test
