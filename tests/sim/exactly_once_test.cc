// SPDX-License-Identifier: Apache-2.0
// Works are executed at most once when channels, peers and devices end (docs/reliability.md).

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/long_run.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Polls the completions into `told`, the status of each work by its tag, and the arrivals into
// `arrived`, the number of arrivals for each immediate.
struct Told {
  std::map<uint64_t, Status> ended;
  std::map<uint64_t, unsigned> arrived;  // by immediate
};
void drain(SimHosts::Host& host, Told& told) {
  std::array<Completion, 64> out;
  for (size_t count = out.size(); count == out.size();) {
    count = host.jetty.poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      if (completion.operation == Operation::receive) {
        if (completion.ok()) ++told.arrived[completion.immediate];
        // A write with an immediate has used no buffer, so there may be no vacant slot for a
        // further one.
        if (host.jetty.vacant_receives() > 0) {
          REQUIRE(host.jetty.receive(host.segment.bytes().first(256), completion.tag));
        }
      } else {
        REQUIRE(told.ended.emplace(completion.tag, completion.status).second);
      }
    }
  }
}

// The case of Varuna, with many works in flight: a work that was executed before the channel died,
// and was not answered, is not executed again when it comes over the next channel.
TEST_CASE("exactly once: no work executes twice when channels die between execution and answer") {
  const unsigned rounds = long_run() ? 100 : 12;
  SimHosts hosts("exactly-once");
  Prng prng(11);
  auto here = hosts.start("delay=50us&loss=1%", {.berths = 64}, {.operation_timeout = 20s});
  auto there = hosts.start("delay=50us&loss=1%", {.berths = 8, .receives = 128});
  const Imported target = here.device.import(there.line).value();
  for (uint64_t tag = 0; tag < 128; ++tag) {
    REQUIRE(there.jetty.receive(there.segment.bytes().first(256), tag));
  }
  const auto bytes = bytes_like(100);
  Told sender, receiver;
  uint64_t posted = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 24; ++i) {
      ++posted;
      const Work work =
          i % 2 == 0
              ? send(bytes, target.jetty).immediate(posted).tag(posted)
              : write(bytes, target.segment, 4096).to(target.jetty).immediate(posted).tag(posted);
      REQUIRE(here.jetty.post(work) == 1);
      if (i == 12) hosts.run_for(std::chrono::microseconds(prng.below(200)));
    }
    // Answers are lost from a moment at which some works have been executed and some have not.
    hosts.run_for(std::chrono::microseconds(prng.below(200)));
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), true);
    for (int i = 0; i < 20; ++i) {
      hosts.run_for(80ms);
      drain(there, receiver);
    }
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), false);
    for (const Time begun = hosts.now(); sender.ended.size() < posted;) {
      REQUIRE(hosts.now() - begun < 30s);
      hosts.run_for(1ms);
      drain(here, sender);
      drain(there, receiver);
    }
  }
  hosts.run_for(1s);
  drain(there, receiver);
  uint64_t ok = 0;
  for (const auto& [tag, status] : sender.ended) {
    const unsigned times = receiver.arrived[tag];
    INFO("work " << tag << ", " << describe(status).name << ", arrived " << times << " times");
    CHECK(times <= 1);
    if (status == Status::ok) CHECK(times == 1);
    if (status != Status::ok) CHECK((status == Status::unknown || times == 0));
    ok += status == Status::ok;
  }
  CHECK(ok > posted / 2);
  CHECK(here.device.stats().value().channels_lost >= rounds / 2);
  CHECK(there.device.stats().value().repeated > 0);
}

TEST_CASE(
    "R7: a peer that stops for less than the time-out of a channel fails none of 1000 works") {
  auto [hosts, here, there, target] =
      SimPair("r7-short", {.network = "delay=50us", .jetty = {.berths = 1000}},
              {.network = "delay=50us", .jetty = {.berths = 8, .receives = 1024}});
  for (uint64_t tag = 0; tag < 1024; ++tag) {
    REQUIRE(there.jetty.receive(there.segment.bytes().first(256), tag));
  }
  std::vector<Work> works;
  const auto bytes = bytes_like(200);
  for (uint64_t i = 1; i <= 1000; ++i) {
    works.push_back(send(bytes, target.jetty).immediate(i).tag(i));
  }
  REQUIRE(here.jetty.post(works) == 1000);
  hosts.run_for(300us);
  hosts.stop(there);
  hosts.run_for(900ms);
  hosts.stop(there, false);
  Told sender, receiver;
  for (const Time begun = hosts.now(); sender.ended.size() < 1000;) {
    REQUIRE(hosts.now() - begun < 5s);
    hosts.run_for(1ms);
    drain(here, sender);
    drain(there, receiver);
  }
  for (const auto& [tag, status] : sender.ended) REQUIRE(status == Status::ok);
  drain(there, receiver);
  REQUIRE(receiver.arrived.size() == 1000);
  for (const auto& [immediate, times] : receiver.arrived) REQUIRE(times == 1);
  CHECK(here.device.stats().value().channels_lost == 0);
}

TEST_CASE(
    "R7: a peer that stops for 5 s is declared dead after 1 s, and served when it continues") {
  auto [hosts, here, there, target] = SimPair(
      "r7-long", {.network = "delay=50us", .jetty = {.berths = 1000}}, {.network = "delay=50us"});
  const auto bytes = bytes_like(200);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  REQUIRE(here.jetty.post(std::vector<Work>(1000, write(bytes, target.segment))) == 1000);
  hosts.run_for(100us);
  hosts.stop(there);
  const Time stopped = hosts.now();
  std::map<Status, size_t> ended = statuses_of(here.jetty, 1000);
  // The channel is declared dead after 1 s, and no new one is made within 2 s.
  CHECK(hosts.now() - stopped <= 3s + 20ms);
  CHECK(ended[Status::ok] + ended[Status::unknown] + ended[Status::peer_unreachable] == 1000);
  hosts.run_for(2s);
  hosts.stop(there, false);
  CHECK(status_of(here.jetty, write(bytes, target.segment, 4096), 1s) == Status::ok);
}

// When a new incarnation begins, packets for the old one are still on their way, and are sent
// again.
TEST_CASE(
    "R8: a peer restarts at its address: no packet for the old incarnation affects the new one") {
  const unsigned lives = long_run() ? 1000 : 100;
  SimHosts hosts("r8");
  constexpr Duration delay = 500us;
  auto survivor = hosts.start("delay=500us", {.berths = 64});
  auto peer = hosts.start("delay=500us&address=fd00::79");
  const auto old_bytes = bytes_like(5000, 3);
  const auto new_bytes = bytes_like(300, 5);
  for (unsigned life = 0; life < lives; ++life) {
    INFO("incarnation " << life);
    const Imported old = survivor.device.import(peer.line).value();
    REQUIRE(status_of(survivor.jetty, write(old_bytes, old.segment), 1s) == Status::ok);
    REQUIRE(survivor.jetty.post(std::vector<Work>(8, write(old_bytes, old.segment, 8192))) == 8);
    hosts.run_for(200us);  // the packets are on the wire
    hosts.kill(std::move(peer));
    peer = hosts.start("delay=500us&address=fd00::79");
    const Imported fresh = survivor.device.import(peer.line).value();
    // The write is posted to a Jetty of its own, because the works of the old one still end one
    // after another.
    Jetty jetty = survivor.device.jetty({.berths = 1}).value();
    const Time posted = hosts.now();
    REQUIRE(status_of(jetty, write(new_bytes, fresh.segment, 65'536), 1s) == Status::ok);
    // One round trip for the channel, one for its cookie, and one for the work.
    REQUIRE(hosts.now() - posted <= 2 * (2 * delay) + 10ms);
    for (size_t count = 0; count < 8;) {
      const auto completions = survivor.jetty.wait(5s);
      REQUIRE_FALSE(completions.empty());
      count += completions.size();
      for (const Completion& completion : completions) {
        const bool fits =
            completion.status == Status::unknown || completion.status == Status::peer_restarted;
        REQUIRE(fits);
      }
    }
    const auto untouched = peer.segment.bytes().first(65'536);
    REQUIRE(std::ranges::all_of(untouched, [](std::byte byte) { return byte == std::byte{0}; }));
    REQUIRE(same(peer.segment.bytes().subspan(65'536, new_bytes.size()), new_bytes));
  }
  // Only two peers are left: the device itself, and the last incarnation.
  const Statistics statistics = survivor.device.stats().value();
  CHECK(statistics.peers == 2);
  CHECK(statistics.channels == 1);
  CHECK(statistics.jetties <= 2);
}

TEST_CASE("RESETs of strangers end no channel, whichever they name") {
  auto [hosts, here, there, target] = SimPair("resets");
  const auto bytes = bytes_like(2000);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  Stranger stranger(hosts, "2001:db8::66");
  SetupMessage reset = stranger.open();
  reset.type = SetupType::reset;
  for (uint32_t tpn = 0; tpn < 3000; ++tpn) {
    reset.to_tpn = tpn * 5501 & 0xffffff;
    stranger.ask(here.device.endpoint(), reset);
  }
  CHECK(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  const Statistics statistics = here.device.stats().value();
  CHECK(statistics.channels_made == 1);
  CHECK(statistics.channels_lost == 0);
  CHECK(statistics.peers == 2);
}

TEST_CASE("an OPEN that is repeated many times, and late, makes one channel") {
  SimHosts hosts("replayed-open");
  auto server = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  const SetupMessage opening = stranger.open();
  REQUIRE(stranger.ask(server.device.endpoint(), opening));
  for (int i = 0; i < 200; ++i) {
    stranger.ask(server.device.endpoint(), opening);
    hosts.run_for(std::chrono::microseconds(100 * i));
  }
  const Statistics statistics = server.device.stats().value();
  CHECK(statistics.channels_made <= 2);  // 2 because the first one was never used
  CHECK(statistics.channels <= 1);
  CHECK(statistics.peers == 2);
}

TEST_CASE("devices that close in turn leave no state in those that stay") {
  SimHosts hosts("graceful");
  auto server = hosts.start("", {.berths = 8, .receives = 16});
  const auto bytes = bytes_like(100);
  for (unsigned client = 0; client < 200; ++client) {
    auto here = hosts.start();
    const Imported target = here.device.import(server.line).value();
    REQUIRE(server.jetty.receive(server.segment.bytes().first(256), client));
    REQUIRE(here.jetty.post({write(bytes, target.segment), send(bytes, target.jetty)}) == 2);
    for (size_t count = 0; count < 2;) {
      const auto done = here.jetty.wait(1s);
      REQUIRE_FALSE(done.empty());
      count += done.size();
    }
    REQUIRE(server.jetty.wait(1ms).size() == 1);
    here.device.close();
  }
  hosts.run_for(10ms);
  const Statistics statistics = server.device.stats().value();
  CHECK(statistics.peers == 1);
  CHECK(statistics.channels == 0);
  CHECK(statistics.jetties <= 2);
}

// Paths are blocked one by one, and unblocked one by one in another order. This has found errors
// that no other test finds.
TEST_CASE("R16: paths among eight hosts are blocked and unblocked in any order; all works end") {
  const unsigned worlds = long_run() ? 200 : 4;
  for (unsigned world = 0; world < worlds; ++world) {
    INFO("world " << world);
    SimHosts hosts("r16-" + std::to_string(world), world + 1);
    Prng prng(world + 1);
    constexpr uint32_t nodes = 8;
    constexpr size_t berths = 64;
    std::vector<SimHosts::Host> host;
    for (uint32_t i = 0; i < nodes; ++i) {
      host.push_back(hosts.start("delay=100us", {.berths = berths, .receives = 256},
                                 {.operation_timeout = 20s}));
      for (uint64_t tag = 0; tag < 256; ++tag) {
        REQUIRE(host[i].jetty.receive(host[i].segment.bytes().first(256), tag));
      }
    }
    std::vector<std::vector<Imported>> to(nodes);
    for (uint32_t i = 0; i < nodes; ++i) {
      for (uint32_t j = 0; j < nodes; ++j) {
        to[i].push_back(host[i].device.import(host[j].line).value());
      }
    }
    const auto bytes = bytes_like(200);
    std::vector<Told> told(nodes);
    uint64_t posted = 0;
    std::vector<uint64_t> posted_by(nodes);
    const auto any = [&](uint32_t below) { return static_cast<uint32_t>(prng.below(below)); };
    const auto act = [&](Duration time) {
      for (int i = 0; i < 10; ++i) {
        const uint32_t from = any(nodes);
        const uint32_t other = (from + 1 + any(nodes - 1)) % nodes;
        const Work work = send(bytes, to[from][other].jetty).immediate(posted + 1).tag(posted + 1);
        if (host[from].jetty.post(work) == 1) ++posted, ++posted_by[from];
        hosts.run_for(time / 10);
        for (uint32_t node = 0; node < nodes; ++node) drain(host[node], told[node]);
      }
    };
    std::vector<std::pair<uint32_t, uint32_t>> clogged;
    for (uint32_t i = 0; i < 10; ++i) {
      clogged.emplace_back(any(nodes), any(nodes));
      hosts.network().faults.cut(host[clogged[i].first].device.endpoint(),
                                 host[clogged[i].second].device.endpoint(), true);
      act(std::chrono::milliseconds(prng.below(100)) + 1ms);
    }
    act(std::chrono::milliseconds(prng.below(1500)) + 1ms);
    for (uint32_t left = 10; left > 0; --left) {
      std::swap(clogged[prng.below(left)], clogged[left - 1]);
      hosts.network().faults.cut(host[clogged[left - 1].first].device.endpoint(),
                                 host[clogged[left - 1].second].device.endpoint(), false);
      act(std::chrono::milliseconds(prng.below(100)) + 1ms);
    }
    const auto all_ended = [&] {
      for (uint32_t i = 0; i < nodes; ++i) {
        if (told[i].ended.size() != posted_by[i]) return false;
      }
      return true;
    };
    for (const Time healed = hosts.now(); !all_ended();) {
      REQUIRE(hosts.now() - healed < 25s);
      hosts.run_for(5ms);
      for (uint32_t node = 0; node < nodes; ++node) drain(host[node], told[node]);
    }
    hosts.run_for(100ms);
    std::map<uint64_t, unsigned> arrived;
    for (uint32_t node = 0; node < nodes; ++node) {
      drain(host[node], told[node]);
      for (const auto& [immediate, times] : told[node].arrived) arrived[immediate] += times;
    }
    for (uint32_t node = 0; node < nodes; ++node) {
      for (const auto& [tag, status] : told[node].ended) {
        INFO("work " << tag << ": " << describe(status).name);
        REQUIRE(arrived[tag] <= 1);
        if (status == Status::ok) REQUIRE(arrived[tag] == 1);
        if (status != Status::ok && status != Status::unknown) REQUIRE(arrived[tag] == 0);
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
