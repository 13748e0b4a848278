// SPDX-License-Identifier: Apache-2.0
// Switches that write hints which no port meter would write: the largest, zero, random ones. A
// sender with C-AQM stays between zero and the rate of its line.

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/sim/excess.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::Signal;

constexpr double line_rate = 1e9 / 8;  // bytes per second
constexpr const char* line = "topology=star&rate=1Gbit&queue=600K&delay=25us&rtt=106us&meter=";
constexpr double largest = 4096 + 96;  // bytes of a packet
// A full packet passes two lines with delays of 25 us, its acknowledgement the same ones.
constexpr double base_rtt = 100e-6 + 2 * largest / line_rate;
constexpr double most_window = 4 * line_rate * base_rtt;

// Two senders write to one receiver while `forge` changes what switches have written.
class Forged {
 public:
  Forged(const std::string& name, const std::string& control, void (*forge)(Signal&, Prng&))
      : hosts_(name), there_(hosts_.start(line + control)) {
    for (int i = 0; i < 2; ++i) {
      from_.push_back(hosts_.start(line + control, {.berths = 16, .receives = 16},
                                   {.operation_timeout = 60s, .congestion = control}));
      targets_.push_back(from_.back().device.import(there_.line).value());
    }
    hosts_.network().faults.on_leave = [this](const Endpoint& at, auto packet) {
      for (size_t i = 0; i < 2; ++i) {
        if (at == from_[i].device.endpoint() && is_data(packet)) {
          excess_[i].add(packet.size(), hosts_.now());
        }
      }
    };
    hosts_.network().faults.forge = [this, forge](Signal& signal) {
      ++forged_;
      forge(signal, prng_);
    };
  }
  ~Forged() { hosts_.network().faults = {}; }

  void run(int works, size_t bytes) {
    const auto data = bytes_like(bytes);
    std::array<int, 2> posted{}, ended{};
    const Time until = hosts_.now() + 60s;
    while (ended[0] < works || ended[1] < works) {
      REQUIRE(hosts_.now() < until);
      for (size_t i = 0; i < 2; ++i) {
        while (posted[i] < works && from_[i].jetty.post(write(data, targets_[i].segment)) == 1) {
          ++posted[i];
        }
        for (const Completion& one : from_[i].jetty.wait(50us)) {
          REQUIRE(name(one.status) == "ok");
          ++ended[i];
        }
      }
    }
    CHECK(same(data, std::span(there_.memory).first(bytes)));
    hosts_.run_for(10ms);
    check();
  }

 private:
  void check() {
    CHECK(forged_ > 0);
    // The packet that leaves, the one after a timer's tick, and what was rounded.
    for (const Excess& one : excess_) CHECK(one.most < 3 * largest);
    const auto lane = hosts_.network().counters_to(there_.device.endpoint());
    CHECK(static_cast<double>(lane.most_queue) < 2 * (most_window + 2 * largest));
    uint64_t sent = 0, received = 0;
    for (SimHosts::Host* const one : {&there_, &from_[0], &from_[1]}) {
      const Statistics counters = one->device.stats().value();
      sent += counters.frames_sent;
      received += counters.frames_received;
      CHECK(counters.channels_lost == 0);
      CHECK(counters.retransmitted == 0);
    }
    CHECK(sent == hosts_.network().counters().sent);
    CHECK(sent == received);
  }

  SimHosts hosts_;
  SimHosts::Host there_;
  std::vector<SimHosts::Host> from_;
  std::vector<Imported> targets_;
  std::array<Excess, 2> excess_{{{line_rate}, {line_rate}}};
  Prng prng_{1};
  uint64_t forged_ = 0;
};

void run(const std::string& control, int works, size_t bytes, void (*forge)(Signal&, Prng&)) {
  INFO(control);
  Forged("forged-" + control, control, forge).run(works, bytes);
}

// A queue code of a long wait blinds the senders to the queue that they find.
constexpr uint8_t blinding = 63;

TEST_CASE("forged hints: the largest increases leave no sender faster than its line") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    run(control, 100, 64 << 10, [](Signal& signal, Prng&) {
      signal = {.increase = true, .switched = true, .hint = 255, .switch_queue = blinding};
    });
  }
}

TEST_CASE("forged hints: the largest rate leaves no sender faster than its line") {
  run("caqm_r", 100, 64 << 10, [](Signal& signal, Prng&) {
    signal = {.congested = true, .switched = true, .hint = 255, .switch_queue = blinding};
  });
}

TEST_CASE("forged hints: zero, with each packet marked, stops no sender") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    run(control, 5, 4096,
        [](Signal& signal, Prng&) { signal = {.congested = true, .switched = true, .hint = 0}; });
  }
}

TEST_CASE("forged hints: random ones, from switches that come and go, do neither") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    run(control, 20, 16 << 10, [](Signal& signal, Prng& prng) {
      signal = {.congested = prng.chance(0.1),
                .increase = prng.chance(0.5),
                .switched = prng.chance(0.9),
                .hint = static_cast<uint8_t>(prng.next()),
                .switch_queue = static_cast<uint8_t>(prng.below(64))};
    });
  }
}

}  // namespace
}  // namespace urma::test
