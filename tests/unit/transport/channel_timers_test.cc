// SPDX-License-Identifier: Apache-2.0
#include "transport/channel_timers.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::ChannelTimers;
using transport::PacketChannel;
using transport::Peer;
using transport::Peers;
using transport::Pools;

Endpoint endpoint_of(uint8_t number) { return {ipv4(10, 0, 0, number), ub_port}; }

// A channel whose state the test chooses.
class ChosenChannel final : public PacketChannel {
 public:
  ChosenChannel(uint32_t index, PeerId peer, Pools& pools, transport::Counters& counters)
      : PacketChannel(index, {.peer = peer, .to = {}, .facts = {}}, pools, counters, Time(1s)) {}

  size_t fill(transport::PacketSource&, std::span<TxFrame* const>, Time) override { return 0; }
  bool wants_to_send(Time) const override { return false; }
  Time next_deadline() const override { return deadline; }
  std::optional<transport::Why> handle_timer(Time) override { return std::nullopt; }
  Duration rtt() const override { return {}; }
  size_t view(std::span<transport::ChannelView>, Time) const override { return 0; }
  void hear_at(Time now) { hear(now); }

  Time deadline = never;
  bool waits = false;

 protected:
  bool outstanding() const override { return waits; }
};

// Channels to hosts 2, 3, ..., and their timers. The device is host 1.
struct Timed {
  static constexpr uint32_t channels = 8;

  explicit Timed(Duration idle_timeout = {}) : timers(settings, peers, idle_timeout) {
    for (uint32_t i = 0; i < channels; ++i) {
      const Endpoint at = endpoint_of(static_cast<uint8_t>(i + 2));
      Peer& peer = *peers.create(at.address, at, Incarnation(5));
      all[i] = std::make_unique<ChosenChannel>(i, peers.id_of(peer), pools, counters);
    }
  }
  ChosenChannel& channel(uint32_t index = 0) { return *all[index]; }
  Peer& peer(uint32_t index = 0) { return *peers.find(all[index]->peer()); }
  std::vector<uint32_t> due(Time now) {
    std::array<uint32_t, channels> out;
    const size_t count = timers.take_due(now, out);
    return {out.begin(), out.begin() + static_cast<ptrdiff_t>(count)};
  }
  bool is_due(Time now) { return !due(now).empty(); }

  const transport::Settings settings{
      .self = endpoint_of(1), .eid = endpoint_of(1).address, .peers = channels};
  SeededEntropy entropy{1};
  Peers peers{settings, entropy};
  transport::Counters counters;
  Pools pools{64, channels};
  ChannelTimers timers;
  std::array<std::unique_ptr<ChosenChannel>, channels> all;
};

TEST_CASE("channel timers: a channel is due once at its deadline, but not before the earliest") {
  Timed timed;
  timed.channel().deadline = Time(2s);
  timed.timers.arm(timed.channel());
  CHECK(timed.timers.next_deadline() <= Time(2s) + TimerWheel::tick);
  CHECK_FALSE(timed.is_due(Time(2s) - 1ns));
  CHECK(timed.is_due(Time(2s) + TimerWheel::tick));
  CHECK_FALSE(timed.is_due(Time(10s)));

  timed.timers.arm(timed.channel(), Time(20s));
  CHECK_FALSE(timed.is_due(Time(20s) - 1ns));
  CHECK(timed.is_due(Time(20s) + TimerWheel::tick));
}

TEST_CASE("channel timers: a deadline at the latest moves a timer forward, never back") {
  Timed timed;
  timed.channel().deadline = Time(2s);
  timed.timers.arm(timed.channel());
  timed.channel().deadline = Time(3s);
  timed.timers.arm_no_later(timed.channel());
  CHECK(timed.is_due(Time(2s) + TimerWheel::tick));
  timed.timers.arm(timed.channel());
  timed.timers.arm_no_later(timed.channel(), Time(2500ms));
  CHECK(timed.is_due(Time(2500ms) + TimerWheel::tick));
  timed.timers.arm(timed.channel());
  timed.timers.disarm(timed.channel());
  CHECK_FALSE(timed.is_due(Time(10s)));
}

TEST_CASE("channel timers: an idle channel is due when it is to be closed") {
  Timed timed(5s);
  timed.channel().hear_at(Time(10s));
  CHECK(timed.timers.closes_at(timed.channel()) == Time(15s));
  timed.timers.arm(timed.channel());
  CHECK_FALSE(timed.is_due(Time(15s) - 1ns));
  CHECK(timed.is_due(Time(15s) + TimerWheel::tick));
  // Its own deadline may be earlier.
  timed.channel().deadline = Time(16s);
  timed.channel().hear_at(Time(12s));
  timed.timers.arm(timed.channel());
  CHECK(timed.is_due(Time(16s) + TimerWheel::tick));
}

TEST_CASE("channel timers: a channel is not closed while it or its set-up is busy") {
  Timed timed(5s);
  const auto closes = [&] { return timed.timers.closes_at(timed.channel()) != never; };
  REQUIRE(closes());
  timed.channel().waits = true;
  CHECK_FALSE(closes());
  timed.channel().waits = false;
  REQUIRE(timed.channel().offer({}, transport::Class::request, 100));
  CHECK_FALSE(closes());

  const auto closes_with = [&](uint32_t index) {
    return timed.timers.closes_at(timed.channel(index)) != never;
  };
  timed.peer(1).opening = true;
  timed.peer(2).closes = 1;
  timed.peer(3).answered_open = true;
  for (uint32_t index = 1; index <= 3; ++index) CHECK_FALSE(closes_with(index));
  CHECK(closes_with(4));
}

TEST_CASE("channel timers: the channel of a device to itself is never closed") {
  Timed timed(5s);
  timed.peers.destroy(timed.peer(7));
  Peer& self = *timed.peers.create(timed.settings.eid, timed.settings.self, Incarnation(6));
  const ChosenChannel own(7, timed.peers.id_of(self), timed.pools, timed.counters);
  CHECK(timed.timers.closes_at(own) == never);
}

TEST_CASE("channel timers: no channel is closed without a timeout, or while the device closes") {
  Timed without;
  CHECK(without.timers.closes_at(without.channel()) == never);
  Timed timed(5s);
  CHECK(timed.timers.closes_at(timed.channel()) != never);
  timed.timers.keep_idle();
  CHECK(timed.timers.closes_at(timed.channel()) == never);
  timed.timers.arm(timed.channel());
  CHECK_FALSE(timed.is_due(Time(100s)));
}

// A timer may be late by a tick.
TEST_CASE("channel timers: channels are due when a list of deadlines says so") {
  Timed timed(5s);
  Prng prng(1);
  std::array<Time, Timed::channels> expected;
  expected.fill(never);
  Time now(1s);
  uint64_t fired = 0;
  for (int step = 0; step < 50'000; ++step) {
    const auto index = static_cast<uint32_t>(prng.below(Timed::channels));
    ChosenChannel& channel = timed.channel(index);
    const auto soon = [&] {
      return now + Duration(static_cast<int64_t>(prng.below(1'000'000'000)));
    };
    channel.deadline = prng.chance(0.3) ? never : soon();
    channel.waits = prng.chance(0.5);
    if (prng.chance(0.2)) channel.hear_at(now);
    const Time closes = channel.waits ? never : channel.last_heard() + 5s;
    // A deadline in the past counts as one at `now`.
    const Time next = std::max(now, std::min(channel.deadline, closes));
    switch (prng.below(4)) {
      case 0: {
        const Time earliest = soon();
        timed.timers.arm(channel, earliest);
        expected[index] = std::max(next, earliest);
        break;
      }
      case 1:
        timed.timers.arm_no_later(channel);
        expected[index] = std::min(expected[index], next);
        break;
      case 2: {
        const Time latest = soon();
        timed.timers.arm_no_later(channel, latest);
        expected[index] = std::min(expected[index], latest);
        break;
      }
      default:
        timed.timers.disarm(channel);
        expected[index] = never;
    }
    now += Duration(static_cast<int64_t>(prng.below(100'000'000)));
    const Time soonest = *std::min_element(expected.begin(), expected.end());
    if (soonest != never) REQUIRE(timed.timers.next_deadline() <= soonest + TimerWheel::tick);
    for (const uint32_t one : timed.due(now)) {
      REQUIRE(expected[one] <= now);
      expected[one] = never;
      ++fired;
    }
    for (const Time one : expected) REQUIRE(one > now - TimerWheel::tick);
  }
  CHECK(fired > 5000);
}

}  // namespace
}  // namespace urma::test
