// SPDX-License-Identifier: Apache-2.0
// Peers that die, restart, leave, and come back.

#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("without a device at the address, a work ends as peer_unreachable 2 s after its post") {
  auto [hosts, here, there, target] = SimPair("unreachable");
  hosts.kill(std::move(there));
  const Time posted = hosts.now();
  const auto bytes = bytes_like(100);
  CHECK(status_of(here.jetty, write(bytes, target.segment).tag(1), 10s) ==
        Status::peer_unreachable);
  CHECK(hosts.now() - posted <= 2s + 10ms);
}

TEST_CASE("when a peer dies, each of 1000 works in flight ends in time, unknown or unreachable") {
  auto [hosts, here, there, target] = SimPair(
      "dies", {.network = "delay=100us", .jetty = {.berths = 1000}}, {.network = "delay=100us"});
  const auto bytes = bytes_like(3000);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  const std::vector<Work> works(1000, write(bytes, target.segment));
  REQUIRE(here.jetty.post(works) == 1000);
  hosts.run_for(250us);
  hosts.kill(std::move(there));
  const Time died = hosts.now();
  std::map<Status, size_t> ended = statuses_of(here.jetty, 1000);
  // Works of which packets had left may have been executed, the others were not; no other status is
  // possible.
  CHECK(ended[Status::unknown] > 0);
  CHECK(ended[Status::peer_unreachable] > 0);
  CHECK(ended[Status::ok] + ended[Status::unknown] + ended[Status::peer_unreachable] == 1000);
  // A silent channel is declared dead after 1 s, and the attempt to make a new one ends after 2 s.
  CHECK(hosts.now() - died <= 3s + 20ms);
}

TEST_CASE("a peer that restarts at its address is a new peer: old works end, new imports succeed") {
  auto [hosts, here, there, old] = SimPair("restarts", {}, {.network = "address=fd00::77"});
  const auto bytes = bytes_like(5000);
  REQUIRE(status_of(here.jetty, write(bytes, old.segment), 1s) == Status::ok);
  hosts.kill(std::move(there));
  auto again = hosts.start("address=fd00::77");

  const Time posted = hosts.now();
  REQUIRE(here.jetty.post(write(bytes, old.segment)) == 1);
  CHECK(only_status(here.jetty, 5s) ==
        Status::unknown);  // packets for the old incarnation had left
  CHECK(hosts.now() - posted <
        50ms);  // the new incarnation reported the restart, so no time-out was needed
  CHECK(status_of(here.jetty, write(bytes, old.segment), 5s) == Status::peer_restarted);

  const Imported fresh = here.device.import(again.line).value();
  const Time restarted = hosts.now();
  CHECK(status_of(here.jetty, write(bytes, fresh.segment, 16), 5s) == Status::ok);
  CHECK(hosts.now() - restarted < 1ms);
  CHECK(same(again.segment.bytes().subspan(16, bytes.size()), bytes));
}

TEST_CASE("a restarted peer is served even if the other end still has its old channel") {
  SimHosts hosts("survivor");
  auto survivor = hosts.start();
  auto peer = hosts.start("address=fd00::78");
  const auto bytes = bytes_like(2000);
  Imported target = peer.device.import(survivor.line).value();
  REQUIRE(status_of(peer.jetty, write(bytes, target.segment), 1s) == Status::ok);
  for (unsigned life = 0; life < 20; ++life) {
    hosts.kill(std::move(peer));
    peer = hosts.start("address=fd00::78");
    target = peer.device.import(survivor.line).value();
    const auto news = bytes_like(2000, life);
    const Time begun = hosts.now();
    REQUIRE(status_of(peer.jetty, write(news, target.segment, 4096 * life), 1s) == Status::ok);
    REQUIRE(hosts.now() - begun < 1ms);  // the cookie takes one more round trip
    REQUIRE(same(survivor.segment.bytes().subspan(4096 * life, news.size()), news));
  }
  // Only two peers are left: the device itself, and the last incarnation.
  const Statistics statistics = survivor.device.stats().value();
  CHECK(statistics.peers == 2);
  CHECK(statistics.channels == 1);
}

// The case of Varuna: a send is executed, and the path dies before the answer. The outage is also
// so long that the target forgets peers that ask for channels and never use them.
TEST_CASE("a send whose answer is lost with its channel is delivered once and completes as ok") {
  const Duration outage = GENERATE(1'200ms, 6s);
  auto [hosts, here, there, target] =
      SimPair("varuna-" + std::to_string(outage.count()),
              {.jetty = {.berths = 64, .receives = 16}, .device = {.operation_timeout = 20s}});
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(there.jetty.receive(inbox, tag));
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, send(bytes, target.jetty).tag(1), 1s) == Status::ok);
  REQUIRE(only_status(there.jetty, 1s) == Status::ok);

  const Time cut_at = hosts.now();
  // No answer comes back; the message and the immediate arrive and are executed.
  hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), true);
  REQUIRE(here.jetty.post({send(bytes, target.jetty).tag(2),
                           write(bytes, target.segment).to(target.jetty).immediate(7).tag(3)}) ==
          2);
  size_t arrived = 0;
  for (const Completion& completion : there.jetty.wait(1s)) arrived += completion.ok();
  hosts.run_for(outage);  // by then the channel has been declared dead
  hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), false);
  size_t done = 0;
  while (done < 2) {
    const auto completions = here.jetty.wait(15s);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& completion : completions) {
      INFO(describe(completion.status).name << " after " << (hosts.now() - cut_at).count());
      CHECK(completion.ok());
      ++done;
    }
  }
  hosts.run_for(100ms);
  for (const Completion& completion : there.jetty.wait(10ms)) arrived += completion.ok();
  CHECK(arrived == 2);
  CHECK(there.device.stats().value().repeated == 2);
}

TEST_CASE("a path that is cut for less than the time-out of a channel fails no work") {
  auto [hosts, here, there, target] = SimPair("short-cut");
  const auto bytes = bytes_like(100'000);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), true);
  REQUIRE(here.jetty.post(write(bytes, target.segment, 7)) == 1);
  hosts.run_for(800ms);
  hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), false);
  CHECK(only_status(here.jetty, 1s) == Status::ok);
  CHECK(here.device.stats().value().channels_lost == 0);
}

TEST_CASE("when both ends ask for a channel at the same time, there is one, and both use it") {
  for (const char* delay : {"delay=0us", "delay=50us", "delay=5ms"}) {
    auto [hosts, a, b, to_b] =
        SimPair(std::string("simultaneous-") + delay, {.network = delay}, {.network = delay});
    const Imported to_a = b.device.import(a.line).value();
    const auto bytes = bytes_like(10'000);
    REQUIRE(a.jetty.post(write(bytes, to_b.segment)) == 1);
    REQUIRE(b.jetty.post(write(bytes, to_a.segment)) == 1);
    CHECK(only_status(a.jetty, 1s) == Status::ok);
    CHECK(only_status(b.jetty, 1s) == Status::ok);
    CHECK(a.device.stats().value().channels_made == 1);
    CHECK(b.device.stats().value().channels_made == 1);
  }
}

TEST_CASE("devices that import from each other at once know one peer and have one channel") {
  for (const char* delay : {"delay=0us", "delay=50us", "delay=5ms"}) {
    SimHosts hosts(std::string("crossing-") + delay);
    auto a = hosts.start(delay);
    auto b = hosts.start(delay);
    b.device.publish("inbox", b.segment, b.jetty).value();
    const Imported to_a = b.device.import(a.line).value();
    const auto bytes = bytes_like(10'000);
    REQUIRE(b.jetty.post(write(bytes, to_a.segment)) == 1);
    // The importer knows only the address. Which peer is there becomes known with the answer.
    const std::string name = "urma://" + to_string(b.device.endpoint()) + "/inbox";
    const Imported to_b = a.device.import(name).value();
    CHECK(only_status(b.jetty, 1s) == Status::ok);
    CHECK(status_of(a.jetty, write(bytes, to_b.segment), 1s) == Status::ok);
    for (auto* host : {&a, &b}) {
      const Statistics statistics = host->device.stats().value();
      CHECK(statistics.peers == 2);  // the device itself, and the other one
      CHECK(statistics.channels_made == 1);
    }
  }
}

TEST_CASE("a device that closes notifies its peers, so they need no time-out") {
  auto [hosts, here, there, target] = SimPair("leaves");
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  there.device.close();
  const Time closed = hosts.now();
  CHECK(status_of(here.jetty, write(bytes, target.segment), 5s) == Status::peer_restarted);
  CHECK(hosts.now() - closed < 1ms);
  CHECK(here.device.stats().value().channels == 0);
}

TEST_CASE("on a path that loses large packets, a channel with smaller packets is made") {
  SimHosts hosts("small-path");
  auto here = hosts.start("mtu=8192");
  auto there = hosts.start("mtu=8192");
  hosts.network().faults.largest_packet = 2500;
  const Imported target = here.device.import(there.line).value();
  const auto bytes = bytes_like(300'000);
  CHECK(status_of(here.jetty, write(bytes, target.segment), 2s) == Status::ok);
  CHECK(same(there.segment.bytes().first(bytes.size()), bytes));
}

TEST_CASE("a process can be its own peer") {
  SimHosts hosts("self");
  auto here = hosts.start();
  const Imported self = here.device.import(here.line).value();
  const auto bytes = bytes_like(200'000);
  REQUIRE(here.jetty.post(write(bytes, self.segment, 3).to(self.jetty).immediate(9)) == 1);
  size_t told = 0;
  while (told < 2) {
    const auto completions = here.jetty.wait(1s);
    REQUIRE_FALSE(completions.empty());
    told += completions.size();
    for (const Completion& completion : completions) CHECK(completion.ok());
  }
  CHECK(same(here.segment.bytes().subspan(3, bytes.size()), bytes));
}

}  // namespace
}  // namespace urma::test
