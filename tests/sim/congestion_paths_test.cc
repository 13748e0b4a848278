// SPDX-License-Identifier: Apache-2.0
// Congestion controls that read a report for each path, while paths come, go and change over.

#include <algorithm>
#include <array>

#include "base/prng.h"
#include "congestion/controller.h"
#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr double path_bytes_per_second = 125e6;
// Both ends may remove the only path that works before a new one was asked, and questions become
// rarer. Each of the works in progress has packets on each path, so they end together.
constexpr Duration longest_standstill = 200ms;
constexpr const char* marking_path = "rate=1Gbit&queue=400K&mark=60K&delay=20us";

// Two hosts with two paths at first.
struct ChangingPaths : SimPair {
  std::string port;  // the device string of one more path
  uint64_t posted = 0;
  uint64_t ended = 0;
  Time ended_at{};

  ChangingPaths(const std::string& network, const std::string& control,
                const Retransmission& mode = sel_rack, uint64_t seed = 1)
      : SimPair(network,
                {.text = "paths():" + port_of(network) + "+" + port_of(network),
                 .jetty = {.berths = 64},
                 .device = {.congestion = control,
                            .retransmission = mode,
                            .balance = seed % 2 == 0 ? Balance::packet : Balance::slice}},
                {.text = "paths():" + port_of(network) + "+" + port_of(network),
                 .jetty = {.berths = 64}},
                seed),
        port(port_of(network)) {}

  static std::string port_of(const std::string& network) {
    return "sim:" + network + "?" + marking_path;
  }

  // Keeps writing. Returns the bytes that arrive in a second.
  double flow(Duration time) {
    static const auto data = bytes_like(32 << 10);
    const Time begun = hosts.now();
    const uint64_t before = ended;
    while (hosts.now() < begun + time) {
      while (here.jetty.post(write(data, target.segment)) == 1) ++posted;
      take(here.jetty.wait(100us));
    }
    const double seconds = std::chrono::duration<double>(hosts.now() - begun).count();
    return static_cast<double>((ended - before) * data.size()) / seconds;
  }
  void take(std::span<const Completion> completions) {
    for (const Completion& one : completions) {
      REQUIRE(urma::name(one.status) == "ok");
      ++ended;
      ended_at = hosts.now();
    }
    if (ended > 0) REQUIRE(hosts.now() < ended_at + longest_standstill);
  }
  // Ends all works, and checks that all packets on the network are those of the two devices.
  void finish() {
    const Time begun = hosts.now();
    while (ended < posted && hosts.now() < begun + 5s) take(here.jetty.wait(100ms));
    CHECK(ended == posted);
    CHECK(same(bytes_like(32 << 10), std::span(there.memory).first(32 << 10)));
    const Statistics sender = here.device.stats().value();
    const Statistics receiver = there.device.stats().value();
    CHECK(sender.frames_sent + receiver.frames_sent == hosts.network().counters().sent);
    CHECK(sender.frames_received + receiver.frames_received <= hosts.network().counters().sent);
    for (const Statistics& one : {sender, receiver}) {
      CHECK(one.channels_made == 1);
      CHECK(one.channels_lost == 0);
    }
  }
};

constexpr std::array controls_with_reports{"ldcp", "dcqcn", "caqm_r"};

TEST_CASE("paths that come and go at both ends stop no control, and packets are conserved") {
  for (const std::string control : controls_with_reports) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO(control << " seed " << seed);
      ChangingPaths paths("come-and-go-" + control + std::to_string(seed), control, sel_rack, seed);
      Prng chance(seed);
      paths.flow(10ms);
      for (int change = 0; change < 30; ++change) {
        SimHosts::Host& host = chance.below(2) == 0 ? paths.here : paths.there;
        const auto places = host.device.endpoints();
        if (places.size() > 1 && (places.size() > 3 || chance.below(2) == 0)) {
          REQUIRE(host.device.remove_path(places[chance.below(places.size())]).ok());
        } else {
          REQUIRE(host.device.add_path(paths.port).ok());
        }
        paths.flow(5ms);
      }
      // The paths that are left, of which there is one at least, carry what they can.
      paths.flow(300ms);
      CHECK(paths.flow(50ms) > path_bytes_per_second / 2);
      paths.finish();
    }
  }
}

TEST_CASE("a new path carries data within a few round trips, and begins as a new channel does") {
  for (const std::string control : controls_with_reports) {
    INFO(control);
    ChangingPaths paths("new-path-" + control, control, sel_rack, 2);
    paths.flow(20ms);
    const double two = paths.flow(20ms);
    REQUIRE(paths.here.device.add_path(paths.port).ok());
    REQUIRE(paths.there.device.add_path(paths.port).ok());
    paths.flow(20ms);
    const auto ways = paths.here.device.paths(paths.target.segment.peer).value();
    REQUIRE(ways.size() == 3);
    const double three = paths.flow(20ms);
    CHECK(three > two + path_bytes_per_second / 2);
    CHECK(three < 3.05 * path_bytes_per_second);
    // The number of a path that goes belongs to the next one, whose reports count from zero.
    for (SimHosts::Host* host : {&paths.here, &paths.there}) {
      REQUIRE(host->device.remove_path(host->device.endpoints()[1]).ok());
      paths.flow(2ms);
      REQUIRE(host->device.add_path(paths.port).ok());
      paths.flow(20ms);
    }
    CHECK(paths.flow(20ms) > two + path_bytes_per_second / 2);
    paths.finish();
  }
}

// The path in use is removed at either end, and another one is added. dcqcn, which is not told the
// rate of the line, floods it, and then go-back-N sends most packets again.
TEST_CASE("where one path is used at a time, a change over keeps the rate, and loses no packet") {
  for (const Retransmission& mode : {sel_fast, gbn_fast}) {
    for (const std::string control : {"ldcp", "caqm_r"}) {
      INFO(control << " " << urma::name(mode));
      ChangingPaths paths("change-over-" + control + std::string(urma::name(mode)), control, mode);
      paths.flow(20ms);
      for (int change = 0; change < 6; ++change) {
        SimHosts::Host& host = change % 2 == 0 ? paths.here : paths.there;
        REQUIRE(host.device.remove_path(host.device.endpoints().front()).ok());
        CHECK(paths.flow(5ms) > path_bytes_per_second / 8);
        REQUIRE(host.device.add_path(paths.port).ok());
        CHECK(paths.flow(5ms) > path_bytes_per_second / 8);
        const double rate = paths.flow(20ms);
        CHECK(rate > path_bytes_per_second / 2);
        CHECK(rate < 1.05 * path_bytes_per_second);
      }
      paths.finish();
    }
  }
}

}  // namespace
}  // namespace urma::test
