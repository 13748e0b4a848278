// SPDX-License-Identifier: Apache-2.0
#include "congestion/caqm_w.h"

#include <malloc.h>

#include <cmath>
#include <map>

#include "tests/catch.h"
#include "tests/sanitized.h"
#include "tests/unit/congestion/script.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::CaqmW;
using congestion::CaqmWMeter;
using congestion::Feedback;
using congestion::PortSettings;
using congestion::Signal;

constexpr Feedback granted_packet{.increase = true, .switched = true, .hint = 32};
constexpr Feedback not_granted{.switched = true};

Feedback marks(uint32_t packets) { return {.marked_packets = packets, .switched = true}; }

// A sender after slow start, with a window of so many packets.
Script<CaqmW> careful_sender(int packets) {
  Script<CaqmW> script;
  while (script.window() < packets * 1000) script.acknowledge(granted_packet, 100us);
  script.acknowledge(not_granted, 100us);
  return script;
}

TEST_CASE("in slow start a packet asks for its own size, and the window doubles") {
  Script<CaqmW> script;
  const Signal signal = script.send();
  CHECK(signal.increase);
  CHECK(signal.hint >= 31);
  CHECK(signal.hint <= 32);
  script.round(granted_packet, 100us);
  script.round(granted_packet, 100us);
  CHECK(script.window() == 4000);
}

TEST_CASE("a retransmission tells its window, and does not ask for an increase") {
  Script<CaqmW> script;
  const Signal again = script.send(1000, true);
  CHECK_FALSE(again.increase);
  CHECK(again.hint >= 31);
}

// Returns the bytes that a window of packets asks for in a round trip: the mean of many rounds.
template <class Ask>
double asked_in_a_round(int packets, Ask&& ask) {
  constexpr int rounds = 500;
  double sum = 0;
  for (int i = 0; i < rounds * packets; ++i) sum += ask();
  return sum / rounds;
}

// A double with defect (a): it accumulates fractions of a packet and asks for one byte each.
struct ByteAsker {
  double window;
  double fraction = 0;
  double operator()() {
    fraction += 0.25 / window * 1000;
    if (fraction < 1) return 0;
    fraction -= 1;
    return 1;
  }
};

TEST_CASE("defect (a): after slow start, a window asks for a quarter of a packet in a round trip") {
  for (const int packets : {2, 10, 50}) {
    Script<CaqmW> script = careful_sender(packets);
    const double window = script.window();
    const auto asks_right = [&](double bytes) { return std::fabs(bytes - 250) < 25; };
    const auto exact_packets = static_cast<int>(std::lround(window / 1000));
    CHECK(asks_right(asked_in_a_round(exact_packets, [&] { return script.send().hint * 32.0; })));
    CHECK_FALSE(asks_right(asked_in_a_round(exact_packets, ByteAsker{window})));
  }
}

TEST_CASE("a mark takes half a packet, or a tenth of a small window, and at most half at once") {
  Script<CaqmW> large = careful_sender(20);
  const double before = large.window();
  large.acknowledge(marks(1), 100us);
  CHECK(large.window() == before - 500);
  large.acknowledge(marks(4), 100us);
  CHECK(large.window() == before - 2500);
  large.acknowledge(marks(255), 100us);
  CHECK(large.window() == (before - 2500) / 2);
  Script<CaqmW> small;
  small.acknowledge(marks(1), 100us);
  CHECK(std::fabs(small.window() - 900) < 0.01);
}

TEST_CASE("an acknowledgement with grants and marks adds, then takes (UB 6.6.1.3, table 6-11)") {
  Script<CaqmW> script = careful_sender(20);
  const double before = script.window();
  Feedback both = marks(1);
  both.increase = true;
  both.hint = 10;
  script.acknowledge(both, 100us);
  CHECK(std::fabs(script.window() - (before + 320 - 500)) < 0.01);
  const double held = script.window();
  script.acknowledge(not_granted, 100us);
  CHECK(script.window() == held);
}

TEST_CASE("below a quarter of a packet, grants add the same to each window") {
  for (const int notifications : {3, 4}) {
    Script<CaqmW> script;
    for (int i = 0; i < notifications; ++i) {
      script.now += 1ms;
      script.controller.handle(
          congestion::Notified{.now = script.now, .rtt = 100us, .severe = true, .last_hop = false});
    }
    // A sender takes all that switches grant only some rounds after the last cut.
    for (int round = 0; round < 20; ++round) {
      script.now += 100us;
      script.acknowledge(not_granted, 100us);
    }
    const double before = script.window();
    script.acknowledge(granted_packet, 100us);
    CHECK(std::fabs(script.window() - before - 1000 / 64.0) < 0.01);
  }
}

TEST_CASE("ten round trips with grants only lead back to slow start") {
  Script<CaqmW> script = careful_sender(4);
  const double before = script.window();
  constexpr Feedback little{.increase = true, .switched = true, .hint = 1};
  for (int round = 0; round < 10; ++round) {
    script.now += 100us;
    script.acknowledge(little, 100us);
  }
  CHECK(script.send().hint < 16);
  script.now += 100us;
  script.acknowledge(little, 100us);
  script.now += 100us;
  script.acknowledge(little, 100us);
  CHECK(script.send().hint >= 31);
  CHECK(script.window() < before + 500);
}

// A double with defect (b): the window is never below a packet, and nothing paces.
struct FlooredSender {
  explicit FlooredSender(const congestion::Settings&) {}
  Signal request(const congestion::Sent&) { return {}; }
  void handle(const congestion::Notified&) { window = std::max<uint64_t>(window / 2, 1000); }
  congestion::Allowance allowance(Time) const { return {window, Time::min()}; }
  uint64_t window = 1000;
};

// Returns how many packets leave in 1000 round trips after many notifications.
template <class Kind>
int sent_by_a_small_window() {
  Kind sender(small_packets);
  Time now{};
  for (int i = 0; i < 6; ++i) {
    now += 1ms;
    sender.handle(
        congestion::Notified{.now = now, .rtt = 100us, .severe = true, .last_hop = false});
  }
  int packets = 0;
  for (int round = 0; round < 1000; ++round, now += 100us) {
    if (now < sender.allowance(now).not_before) continue;
    ++packets;
    sender.request({.now = now,
                    .number = static_cast<uint64_t>(packets),
                    .bytes = 1000,
                    .again = false,
                    .inflight_bytes = 0});
  }
  return packets;
}

TEST_CASE("defect (b): a sixty-fourth of a packet leaves once in 64 round trips") {
  CHECK(sent_by_a_small_window<CaqmW>() < 24);
  CHECK(sent_by_a_small_window<CaqmW>() > 8);
  CHECK(sent_by_a_small_window<FlooredSender>() == 1000);
}

// A double with defect (c): a negative amount is converted to an unsigned number.
uint64_t wrapped_bytes(double value, uint64_t most) {
  return std::min(static_cast<uint64_t>(static_cast<int64_t>(value)), most);
}

TEST_CASE("defect (c): a negative amount is zero bytes, not 2^64") {
  for (const auto convert : {&congestion::whole_bytes, &wrapped_bytes}) {
    CHECK((convert(-1.5, 4096) == 0) == (convert == &congestion::whole_bytes));
  }
}

// A double with defect (d): it trusts grants without a switch, and reads no delay.
struct TrustingSender : Script<CaqmW> {
  void acknowledge(Feedback feedback, Duration) {
    feedback.switched = true;
    Script::acknowledge(feedback, base);
  }
};

// Returns the window in packets after 300 round trips in which no switch refused anything, while
// the path holds 100 packets and queues the others.
template <class Sender>
double window_without_a_switch() {
  Sender sender;
  constexpr Feedback unrefused{.increase = true, .hint = 32};
  for (int round = 0; round < 300; ++round) {
    const double share = std::max(sender.window() / 100'000, 1.0);
    const Duration sample = congestion::duration_of(share * 100e-6);
    const auto packets = static_cast<int>(sender.window() / 1000);
    for (int i = 0; i < packets; ++i) sender.acknowledge(unrefused, sample);
    sender.now += sample;
  }
  return sender.window() / 1000;
}

TEST_CASE("defect (d): without a switch, requests that nothing refused do not run away") {
  CHECK(window_without_a_switch<Script<CaqmW>>() < 200);
  CHECK(window_without_a_switch<Script<CaqmW>>() > 80);
  CHECK(window_without_a_switch<TrustingSender>() >= 400);
}

// Whatever switches write, the rate stays between 1/1024 packet in a round trip and the link's, and
// one acknowledgement adds no more than slow start would.
TEST_CASE("forged, zero and largest increases leave a rate that the link can do") {
  for (const unsigned hint : {0, 1, 255, 256, 0xffff}) {
    for (const uint32_t marked : {0, 1, 255}) {
      for (const bool increase : {false, true}) {
        Script<CaqmW> script;
        for (int i = 0; i < 2000; ++i) {
          script.now += 7us;
          const double before = script.window();
          script.acknowledge({.marked_packets = marked,
                              .increase = increase,
                              .switched = true,
                              .hint = static_cast<uint16_t>(hint),
                              .switch_queue = 255},
                             100us);
          REQUIRE(script.window() <= before + 1000);
          REQUIRE(script.window() <= 400'000);
          REQUIRE(script.controller.bytes_per_second() <= 1e9);
          REQUIRE(script.controller.bytes_per_second() >= 0.97 / 100e-6);
        }
      }
    }
  }
}

// ---- the port

constexpr PortSettings gigabyte_port{
    .bytes_per_second = 1e9, .base_rtt = 100us, .packet_bytes = 1000, .seed = 3};

// Full packets leave one after the other, with this queue behind them. All ask for so much.
template <class Meter, class See>
void drain(Meter& meter, Time& now, int packets, uint64_t queue_bytes, uint8_t hint, See&& see) {
  for (int i = 0; i < packets; ++i) {
    now += 1us;
    see(meter.depart(now, 1000, queue_bytes, {.increase = true, .hint = hint}));
  }
}

TEST_CASE("an idle port grants, a loaded one with a queue refuses and marks") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  int granted = 0, marked = 0;
  for (int i = 0; i < 100; ++i) {
    now += 5us;
    granted += meter.depart(now, 1000, 0, {.increase = true, .hint = 8}).increase;
  }
  CHECK(granted == 100);
  granted = 0;
  drain(meter, now, 1000, 60'000, 8, [&](const Signal& signal) {
    granted += signal.increase;
    marked += signal.congested;
    CHECK_FALSE((signal.increase && signal.congested));
  });
  CHECK(granted < 50);
  CHECK(marked > 100);
}

TEST_CASE("the port marks senders above the fair window, which ask for less") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  int large = 0, small = 0;
  for (int i = 0; i < 4000; ++i) {
    now += 1us;
    // A window of 60 packets asks for 4 bytes with each, one of 10 packets for 25.
    const bool is_small = i % 7 == 0;
    const double units = (is_small ? 25 : 4) / 32.0;
    const bool up = congestion::chance_of(1, static_cast<uint64_t>(i)) < units;
    const Signal out = meter.depart(now, 1000, 30'000,
                                    {.increase = true, .hint = static_cast<uint8_t>(up ? 1 : 0)});
    if (i > 1000) (is_small ? small : large) += out.congested;
  }
  CHECK(large > 6 * 3 * small);
}

TEST_CASE("packets in slow start do not make other senders seem to be above their share") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  int marked = 0;
  for (int i = 0; i < 4000; ++i) {
    now += 1us;
    // Half of the port belongs to a sender in slow start. The other one has a window of 40 packets,
    // and the fair one is 54: it asks for 6 bytes with each packet.
    const bool starts = i % 2 == 0;
    const bool up = congestion::chance_of(1, static_cast<uint64_t>(i)) < 6 / 32.0;
    const auto hint = static_cast<uint8_t>(starts ? 32 : up ? 1 : 0);
    const Signal out = meter.depart(now, 1000, 20'000, {.increase = true, .hint = hint});
    if (i > 1000 && !starts && up) marked += out.congested;
  }
  CHECK(marked == 0);
}

TEST_CASE("what was granted in the last round trip counts as used until it arrives") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  const auto grants = [&](int packets, Duration gap, uint8_t hint) {
    int granted = 0;
    for (int i = 0; i < packets; ++i) {
      now += gap;
      granted += meter.depart(now, 1000, 16'000, {.increase = true, .hint = hint}).increase;
    }
    return granted;
  };
  // Half of the port is idle: in a round trip, it can send 50 more packets.
  const int granted = grants(50, 2us, 255);
  CHECK(granted > 15);
  CHECK(granted <= 50);
  // A part of that has arrived, and less is left than the rest of it. The first slot ends late.
  grants(6, 1050ns, 2);
  CHECK(grants(80, 1050ns, 2) < 4);
  CHECK(grants(300, 1050ns, 2) > 5);
}

TEST_CASE("for one queue, the marks of a round trip take little more than it from windows") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  // The queue is 10 packets too long, and a mark takes half a packet. The marks of the first round
  // trip begin to shorten it when the next one begins.
  int marked = 0;
  drain(meter, now, 100, 26'000, 0, [&](const Signal& signal) { marked += signal.congested; });
  CAPTURE(marked);
  CHECK(marked >= 15);
  CHECK(marked <= 45);
}

TEST_CASE("marks keep a port from marking, not from granting what is idle afterwards") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  drain(meter, now, 100, 40'000, 0, [](const Signal&) {});
  int granted = 0;
  for (int i = 0; i < 100; ++i) {
    now += 2us;
    granted += meter.depart(now, 1000, 0, {.increase = true, .hint = 8}).increase;
  }
  CHECK(granted > 90);
}

TEST_CASE("a packet that asks for nothing is not marked, because its sender would ignore that") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  drain(meter, now, 200, 60'000, 0, [](const Signal&) {});
  drain(meter, now, 100, 60'000, 0, [](const Signal&) {});
  int marked = 0;
  for (int i = 0; i < 100; ++i) {
    const double before = meter.budget();
    const Signal out = meter.depart(now, 64, 60'000, {.switched = true});
    marked += out.congested;
    CHECK(out == Signal{.switched = true});
    CHECK(meter.budget() == before);
  }
  CHECK(marked == 0);
}

TEST_CASE("if little may be granted, large windows do not get it by asking for less") {
  CaqmWMeter meter(gigabyte_port);
  Time now{};
  // Windows of half a packet and of two; the fair one is in between. Half of the packets are of
  // each.
  double small = 0, large = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += 1us;
    const uint8_t hint = i % 2 == 0 ? 16 : 4;
    const Signal out = meter.depart(now, 1000, 15'000, {.increase = true, .hint = hint});
    if (i > 1000 && out.increase) (i % 2 == 0 ? small : large) += hint;
  }
  CAPTURE(small, large);
  CHECK(small > large);
}

TEST_CASE("a port whose packets take longer than a round trip grants again after each grant") {
  PortSettings slow = gigabyte_port;
  slow.bytes_per_second = 1.25e7;  // a packet takes 80 us
  slow.base_rtt = 8us;
  CaqmWMeter meter(slow);
  Time now{};
  int granted = 0;
  for (int i = 0; i < 2000; ++i) {
    now += 160us;  // half of the port is idle
    granted += meter.depart(now, 1000, 0, {.increase = true, .hint = 1}).increase;
    REQUIRE(std::isfinite(meter.budget()));
  }
  CHECK(granted > 1900);
}

// A double with defect (h): what marks will free is granted without reducing the budget.
struct DeficitMeter {
  explicit DeficitMeter(const PortSettings&) {}
  Signal depart(Time, uint32_t, uint64_t, Signal in) {
    if (++packets % 10 == 0) {
      deficit += 500;
      in.congested = true;
      in.increase = false;
    } else if (deficit >= in.hint * 32.0) {
      deficit -= in.hint * 32.0;
    } else {
      in.increase = false;
    }
    return in;
  }
  double budget() const { return 0; }
  double deficit = 0;
  int packets = 0;
};

template <class Meter>
bool each_grant_costs_budget() {
  Meter meter(gigabyte_port);
  Time now{};
  int grants = 0, paid = 0;
  double before = meter.budget();
  drain(meter, now, 2000, 14'000, 8, [&](const Signal& signal) {
    grants += signal.increase;
    paid += signal.increase && before - meter.budget() >= 8 * 32 - 1e-6;
    before = meter.budget();
  });
  // The first packet of each time slot finds a new budget, which hides what its own grant has cost.
  return grants > 0 && paid * 2 > grants;
}

TEST_CASE("defect (h): each increase that is granted costs budget") {
  CHECK(each_grant_costs_budget<CaqmWMeter>());
  CHECK_FALSE(each_grant_costs_budget<DeficitMeter>());
}

// A double with defect (i): it remembers each packet's request.
struct RememberingSender {
  explicit RememberingSender(const congestion::Settings&) {}
  Signal request(const congestion::Sent& event) {
    requests[event.number] = event.bytes;
    return {};
  }
  std::map<uint64_t, uint32_t> requests;
};

// Returns whether requests of packets that are never acknowledged take no memory.
template <class Kind>
bool needs_no_memory() {
  Kind sender(small_packets);
  const size_t before = mallinfo2().uordblks;
  for (uint64_t number = 0; number < 100'000; ++number) {
    sender.request(
        {.now = Time{}, .number = number, .bytes = 1000, .again = false, .inflight_bytes = 0});
  }
  return mallinfo2().uordblks == before;
}

TEST_CASE("defect (i): packets in flight take no memory of the controller") {
  CHECK(needs_no_memory<CaqmW>());
  if (!sanitized) CHECK_FALSE(needs_no_memory<RememberingSender>());
}

}  // namespace
}  // namespace urma::test
