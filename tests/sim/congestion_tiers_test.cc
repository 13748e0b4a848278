// SPDX-License-Identifier: Apache-2.0
// Two senders with two paths each to one receiver, through two tiers of switches with port meters:
// each path has a controller of its own, and reports of its own about what switches answered.

#include <algorithm>
#include <array>

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr double tier_bytes_per_second = 1.25e9;
constexpr uint32_t packet_bytes = 4096 + 64;  // with headers
constexpr uint32_t paths_each = 2;

// The first leaf has the two addresses of the receiver, each other leaf those of a sender.
struct Tiers {
  static constexpr const char* line =
      "topology=leaf_spine&leaves=3&leaf_hosts=2&spines=2&rate=10Gbit&queue=600K&delay=2us"
      "&trunk_rate=25Gbit&rtt=30us&meter=";

  SimHosts hosts;
  SimHosts::Host there;
  std::vector<SimHosts::Host> from{};
  std::vector<Imported> targets{};
  uint64_t posted = 0;
  uint64_t ended = 0;

  Tiers(const std::string& network, const std::string& control, Balance balance)
      : hosts(network), there(start(network, control, balance)) {
    for (int i = 0; i < 2; ++i) {
      from.push_back(start(network, control, balance));
      targets.push_back(from.back().device.import(there.line).value());
    }
  }
  static SimHosts::Host start(const std::string& network, const std::string& control,
                              Balance balance) {
    const std::string path = "sim:" + network + "?" + line + control;
    return SimHosts::start_at("paths():" + path + "+" + path, {.berths = 64, .receives = 16},
                              {.congestion = control, .balance = balance});
  }

  std::vector<fabric::Switch>& switches() {
    return hosts.network().switches()->network().switches();
  }
  // Keeps writing.
  void flow(Duration time) {
    static const auto data = bytes_like(64 << 10);
    const Time until = hosts.now() + time;
    while (hosts.now() < until) {
      for (size_t i = 0; i < from.size(); ++i) {
        while (from[i].jetty.post(write(data, targets[i].segment)) == 1) ++posted;
        take(from[i].jetty.wait(10us));
      }
    }
  }
  void take(std::span<const Completion> completions) {
    for (const Completion& one : completions) {
      REQUIRE(name(one.status) == "ok");
      ++ended;
    }
  }
  // Ends all works, and runs the network until all packets have arrived.
  void finish() {
    const Time last = hosts.now() + 1s;
    while (ended < posted && hosts.now() < last) {
      for (SimHosts::Host& host : from) take(host.jetty.wait(100us));
    }
    REQUIRE(ended == posted);
    hosts.run_for(50ms);
  }

  // The counters of the receiver's two lines.
  std::array<fabric::LaneCounters, paths_each> arrived() {
    std::array<fabric::LaneCounters, paths_each> out;
    const auto places = there.device.endpoints();
    REQUIRE(places.size() == paths_each);
    for (size_t i = 0; i < paths_each; ++i) out[i] = hosts.network().counters_to(places[i]);
    return out;
  }
  // The longest queue of all ports.
  uint32_t most_queue() {
    uint32_t most = 0;
    for (fabric::Switch& at : switches()) {
      for (uint32_t port = 0; port < at.settings().ports; ++port) {
        most = std::max(most, at.counters(port, 0).most_queue);
      }
    }
    return most;
  }

  void check_conserved() {
    uint64_t sent = there.device.stats().value().frames_sent;
    uint64_t received = there.device.stats().value().frames_received;
    for (SimHosts::Host& host : from) {
      const Statistics counters = host.device.stats().value();
      sent += counters.frames_sent;
      received += counters.frames_received;
      CHECK(counters.retransmitted == 0);
      CHECK(counters.overtaken_reports == 0);
      CHECK(counters.dropped_malformed == 0);
    }
    CHECK(sent == hosts.network().counters().sent);
    CHECK(received == sent);
    for (fabric::Switch& at : switches()) {
      uint64_t came = 0, left = 0;
      for (uint32_t port = 0; port < at.settings().ports; ++port) {
        at.settle(port, hosts.now());
        came += at.counters(port).received_packets;
        left += at.counters(port, 0).packets;
      }
      CHECK(came > 0);
      CHECK(came == left);
      CHECK(at.used_bytes() == 0);
    }
  }
};

void check_tiers(const std::string& control, Balance balance, uint32_t most_packets) {
  INFO(control);
  Tiers tiers("tiers-" + control + (balance == Balance::slice ? "-slice" : "-packet"), control,
              balance);
  tiers.flow(5ms);
  const auto before = tiers.arrived();
  const Time begun = tiers.hosts.now();
  tiers.flow(10ms);
  const double seconds = std::chrono::duration<double>(tiers.hosts.now() - begun).count();
  const auto after = tiers.arrived();
  for (size_t i = 0; i < paths_each; ++i) {
    const auto bytes = static_cast<double>(after[i].bytes - before[i].bytes);
    CHECK(bytes / seconds > 0.9 * tier_bytes_per_second);
    CHECK(after[i].congested > before[i].congested);
  }
  for (size_t i = 0; i < tiers.from.size(); ++i) {
    const auto paths = tiers.from[i].device.paths(tiers.targets[i].segment.peer).value();
    REQUIRE(paths.size() == paths_each);
    const uint64_t sent = paths[0].sent + paths[1].sent;
    for (const Path& path : paths) CHECK(path.sent > sent / 4);
  }
  tiers.finish();
  tiers.check_conserved();
  CHECK(tiers.most_queue() <= most_packets * packet_bytes);
}

// For caqm_r, the bound of bench/congestion for a port with few flows. A port meter of caqm_w
// leaves 16 packets of queue free, and each sender has more in flight before it is told to slow.
TEST_CASE("two paths through metered switches are both full, with short queues and no loss") {
  for (const Balance balance : {Balance::slice, Balance::packet}) {
    INFO((balance == Balance::slice ? "slice" : "packet"));
    check_tiers("caqm_r", balance, 16);
    check_tiers("caqm_w", balance, 32);
  }
}

}  // namespace
}  // namespace urma::test
