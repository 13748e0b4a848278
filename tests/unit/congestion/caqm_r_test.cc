// SPDX-License-Identifier: Apache-2.0
#include "congestion/caqm_r.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/unit/congestion/script.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::CaqmR;
using congestion::CaqmRMeter;
using congestion::Feedback;
using congestion::PortSettings;
using congestion::rate_code;
using congestion::rate_of;
using congestion::Signal;

constexpr Feedback may_grow{.increase = true, .switched = true, .hint = 32};
constexpr Feedback no_growth{.switched = true};

Feedback named(uint16_t hint) { return {.marked_packets = 1, .switched = true, .hint = hint}; }

TEST_CASE("a packet names its sender's rate") {
  Script<CaqmR> script;
  for (int i = 0; i < 5; ++i) script.round(may_grow, 100us);
  const double rate = script.window() / 100e-6;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += rate_of(script.send().hint);
  CHECK(std::fabs(sum / 1000 / rate - 1) < 0.01);
}

TEST_CASE("a window doubles each round trip while no port refuses") {
  Script<CaqmR> script;
  for (const double expected : {2000, 4000, 8000}) {
    script.round(may_grow, 100us);
    CHECK(script.window() == expected);
  }
}

TEST_CASE("after a refusal one packet in a round trip asks, and after a grant all") {
  Script<CaqmR> script;
  CHECK(script.send().increase);
  CHECK(script.send().increase);
  script.now += 100us;
  script.acknowledge(no_growth, 100us);
  CHECK(script.send().increase);
  CHECK_FALSE(script.send().increase);
  script.now += 100us;
  script.acknowledge(no_growth, 100us);
  CHECK(script.send().increase);
  script.acknowledge(may_grow, 100us);
  CHECK(script.send().increase);
  CHECK(script.send().increase);
}

TEST_CASE("a sender to which a port names rates does not ask, until a round without one is over") {
  Script<CaqmR> script;
  for (int i = 0; i < 3; ++i) script.round(may_grow, 100us);
  script.acknowledge(named(rate_code(4e7, 0.5)), 100us);
  CHECK_FALSE(script.send().increase);
  script.now += 100us;
  script.acknowledge(no_growth, 100us);
  CHECK_FALSE(script.send().increase);
  script.now += 100us;
  script.acknowledge(no_growth, 100us);
  CHECK(script.send().increase);
  CHECK_FALSE(script.send().increase);
}

TEST_CASE("below a packet, each packet asks: the next one leaves many round trips later") {
  Script<CaqmR> script;
  script.acknowledge(named(rate_code(2.5e6, 0.5)), 100us);
  CHECK(script.window() < 1000);
  CHECK(script.send().increase);
}

TEST_CASE("a retransmission names its rate and does not ask for more") {
  Script<CaqmR> script;
  const Signal signal = script.send(1000, true);
  CHECK_FALSE(signal.increase);
  CHECK(signal.hint > 0);
  CHECK(script.send().increase);
}

TEST_CASE("a rate that a port names is taken at once if it is much less") {
  Script<CaqmR> script;
  for (int i = 0; i < 6; ++i) script.round(may_grow, 100us);
  const uint8_t code = rate_code(1e8, 0.5);
  script.acknowledge(named(code), 100us);
  CHECK(std::fabs(script.window() - rate_of(code) * 100e-6) < 1);
}

TEST_CASE("rates that differ by their rounding are averaged") {
  Script<CaqmR> script;
  for (int i = 0; i < 6; ++i) script.round(may_grow, 100us);
  const uint8_t code = rate_code(2e8, 0.5);
  script.acknowledge(named(code), 100us);
  for (int i = 0; i < 2000; ++i) {
    script.acknowledge(named(static_cast<uint16_t>(code + i % 2)), 100us);
  }
  const double mean = (rate_of(code) + rate_of(static_cast<uint8_t>(code + 1))) / 2 * 100e-6;
  CHECK(std::fabs(script.window() / mean - 1) < 0.01);
}

TEST_CASE("a window that a port raises grows by a tenth in a round trip at most") {
  Script<CaqmR> script;
  for (int i = 0; i < 6; ++i) script.round(may_grow, 100us);
  script.acknowledge(named(rate_code(2e8, 0.5)), 100us);
  const double before = script.window();
  script.acknowledge(named(rate_code(9e8, 0.5)), 100us, static_cast<uint64_t>(before));
  CHECK(script.window() > 1.09 * before);
  CHECK(script.window() < 1.11 * before);
}

// Whatever a port writes, the rate stays between 1/1024 packet in a round trip and the link's.
TEST_CASE("forged, zero and largest hints leave a rate that the link can do") {
  for (const unsigned hint : {0, 1, 255, 256, 0xffff}) {
    for (const bool marked : {false, true}) {
      for (const bool increase : {false, true}) {
        Script<CaqmR> script;
        for (int i = 0; i < 2000; ++i) {
          script.now += 7us;
          script.acknowledge({.marked_packets = marked,
                              .increase = increase,
                              .switched = true,
                              .hint = static_cast<uint16_t>(hint),
                              .switch_queue = 255},
                             100us);
          CHECK(script.controller.bytes_per_second() <= 1e9);
          CHECK(script.controller.bytes_per_second() >= 0.97 / 100e-6);
          CHECK(script.window() <= 400'000);
        }
      }
    }
  }
}

// ---- the port

constexpr PortSettings gigabyte{
    .bytes_per_second = 1e9, .base_rtt = 100us, .packet_bytes = 1000, .seed = 3};

// Sends packets of `flows` equal flows through a port for so many round trips, as if senders did
// not react. Returns the last signal.
Signal load(CaqmRMeter& meter, Time& now, int flows, double each, int rounds) {
  Signal last;
  const double gap = 1000 / (each * flows);
  const auto packets = static_cast<int>(rounds * 100e-6 / gap);
  for (int i = 0; i < packets; ++i) {
    now += Duration(static_cast<int64_t>(gap * 1e9));
    const auto number = static_cast<uint64_t>(now.time_since_epoch().count());
    last =
        meter.arrive(now, 1000, 0,
                     {.increase = true, .hint = rate_code(each, congestion::chance_of(1, number))});
  }
  return last;
}

TEST_CASE("a port counts its flows within a few round trips, whatever their rate is") {
  for (const int flows : {1, 3, 20, 200}) {
    for (const double load_factor : {0.3, 0.9, 1.5}) {
      CaqmRMeter meter(gigabyte);
      Time now{};
      const double each = load_factor * 1e9 / flows;
      load(meter, now, flows, each, flows > 100 ? 40 : 10);
      INFO(flows << " flows, load " << load_factor);
      CHECK(std::fabs(meter.flows() / flows - 1) < 0.15);
    }
  }
}

TEST_CASE("a port grants growth while it has spare rate, and names the fair rate above it") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  const Signal below = load(meter, now, 4, 2e7, 10);
  CHECK(below.increase);
  CHECK_FALSE(below.congested);
  const Signal above = load(meter, now, 4, 4e8, 10);
  CHECK_FALSE(above.increase);
  CHECK(above.congested);
  CHECK(rate_of(above.hint) < 2.6e8);
}

// Returns how many of so many packets that ask at the same time, at this rate, are granted growth.
int granted_at_once(CaqmRMeter& meter, Time now, int packets, double rate) {
  int granted = 0;
  for (int i = 0; i < packets; ++i) {
    granted +=
        meter.arrive(now, 1000, 0, {.increase = true, .hint = rate_code(rate, 0.5)}).increase;
  }
  return granted;
}

TEST_CASE("what a port grants at once is at most what it can send more in a round trip") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  for (int i = 0; i < 700; ++i) {
    now += 1429ns;  // seven tenths of the port
    meter.arrive(now, 1000, 0, {.hint = rate_code(1.75e8, 0.5)});
  }
  // The rest is 29 packets in a round trip.
  const int granted = granted_at_once(meter, now, 40, 2e7);
  CHECK(granted >= 25);
  CHECK(granted <= 30);
}

TEST_CASE("a port grants nothing to the later ones of many that begin at once") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  load(meter, now, 1, 1e7, 10);
  const int granted = granted_at_once(meter, now, 100, 1e7);
  // Half of the 100 packets that leave in a round trip.
  CHECK(granted >= 48);
  CHECK(granted <= 51);
}

TEST_CASE("a full port refuses a flow below its fair rate until others have slowed down") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  load(meter, now, 2, 6e8, 10);
  const Signal late = meter.arrive(now, 1000, 0, {.increase = true, .hint = rate_code(1e8, 0.5)});
  CHECK_FALSE(late.increase);
  CHECK_FALSE(late.congested);
}

TEST_CASE("the least of the rates that ports on the way name counts") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  load(meter, now, 4, 4e8, 10);
  const uint8_t slower = rate_code(5e7, 0.5), faster = rate_code(8e8, 0.5);
  const Signal kept = meter.arrive(now, 1000, 0, {.congested = true, .hint = slower});
  CHECK(kept.congested);
  CHECK(kept.hint == slower);
  const Signal lowered = meter.arrive(now, 1000, 0, {.congested = true, .hint = faster});
  CHECK(lowered.congested);
  CHECK(rate_of(lowered.hint) < 2.6e8);
}

TEST_CASE("the fair rate falls while a queue stands, to half of the port at the least") {
  CaqmRMeter empty(gigabyte), full(gigabyte);
  Time now{};
  for (int i = 0; i < 2000; ++i) {
    now += 1us;
    const Signal signal{.hint = rate_code(1e9, 0.5)};
    empty.arrive(now, 1000, 0, signal);
    full.arrive(now, 1000, 1 << 30, signal);
  }
  CHECK(full.fair_rate() < 0.7 * empty.fair_rate());
  CHECK(full.fair_rate() > 0.2e9);
}

TEST_CASE("a packet's wait in the port is added to that in the ports before") {
  CaqmRMeter meter(gigabyte);
  const Signal in{.hint = 100, .switch_queue = congestion::queue_code(50e-6)};
  const Signal out = meter.arrive(Time{}, 1000, 100'000, in);
  CHECK(out.switched);
  CHECK(congestion::queue_seconds(out.switch_queue) >= 150e-6);
  CHECK(congestion::queue_seconds(out.switch_queue) < 220e-6);
}

// A double with defect (g): packets that take no part bypass the meter.
struct BypassedMeter {
  explicit BypassedMeter(const PortSettings& settings) : meter(settings) {}

  Signal arrive(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) {
    return in.hint == 0 ? in : meter.arrive(now, bytes, queue_bytes, in);
  }
  double fair_rate() const { return meter.fair_rate(); }

  CaqmRMeter meter;
};

// A flow of 80 % of the port's rate, and as many bytes of packets that take no part.
template <class Meter>
bool counts_all_packets() {
  Meter meter(gigabyte);
  for (Time now{}; now < Time(5ms); now += 1250ns) {
    meter.arrive(now, 1000, 0, {});
    meter.arrive(now, 1000, 0, {.hint = rate_code(8e8, 0.5)});
  }
  return meter.fair_rate() < 0.7e9;
}

TEST_CASE("defect (g): packets that take no part load the port") {
  CHECK(counts_all_packets<CaqmRMeter>());
  CHECK_FALSE(counts_all_packets<BypassedMeter>());
}

TEST_CASE("a forged low rate counts as 256 flows at most, and is forgotten") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  load(meter, now, 4, 2e8, 20);
  meter.arrive(now, 1000, 0, {.hint = 1});
  load(meter, now, 4, 2e8, 2);
  CHECK(meter.flows() <= 4.5 + 256);
  load(meter, now, 4, 2e8, 400);
  CHECK(meter.flows() < 6);
}

TEST_CASE(
    "a large packet with the lowest rate, in a short round trip, counts as 256 flows at most") {
  CaqmRMeter meter({.bytes_per_second = 1e9, .base_rtt = 1us, .packet_bytes = 9000, .seed = 3});
  Time now{};
  const auto pass = [&](int packets) {
    for (int i = 0; i < packets; ++i) {
      now += 1us;
      meter.arrive(now, 1000, 0, {.hint = rate_code(1e9, 0.5)});
    }
  };
  pass(1000);
  meter.arrive(now, 9000, 0, {.hint = 1});  // its rate would fill the port 6900 times less
  pass(3);
  CHECK(meter.flows() > 2);
  CHECK(meter.flows() < 40);
}

TEST_CASE("an idle port forgets its flows") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  load(meter, now, 20, 5e7, 20);
  CHECK(meter.flows() > 15);
  now += 1s;
  meter.arrive(now, 1000, 0, {.hint = rate_code(1e9, 0.5)});
  CHECK(meter.flows() == 1);
}

// Returns how many of so many packets that ask, each 10 ms after the one before, are granted
// growth.
int granted_one_by_one(CaqmRMeter& meter, Time& now, int packets, double rate) {
  int granted = 0;
  for (int i = 0; i < packets; ++i) {
    now += 10ms;
    granted += granted_at_once(meter, now, 1, rate);
  }
  return granted;
}

TEST_CASE("a sender of one packet in a round trip that is long for the port may send more") {
  CaqmRMeter meter(gigabyte);
  Time now{};
  CHECK(granted_one_by_one(meter, now, 10, 1e5) >= 9);
  CHECK_FALSE(load(meter, now, 2, 6e8, 10).increase);
}

// Half of what leaves in a round trip would be 625 bytes.
TEST_CASE("a sender whose packets leave in most of a round trip may send more") {
  PortSettings slow = gigabyte;
  slow.bytes_per_second = 1.25e7;
  CaqmRMeter meter(slow);
  Time now{};
  CHECK(granted_one_by_one(meter, now, 100, 2e6) >= 99);
}

TEST_CASE("the last port on the way says so when it names a rate") {
  for (const bool last : {false, true}) {
    PortSettings settings = gigabyte;
    settings.last_hop = last;
    CaqmRMeter meter(settings);
    Time now{};
    CHECK(load(meter, now, 4, 4e8, 10).last_hop == last);
  }
}

}  // namespace
}  // namespace urma::test
