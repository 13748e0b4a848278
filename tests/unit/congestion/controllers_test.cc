// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "base/prng.h"
#include "congestion/controller.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using congestion::Acknowledged;
using congestion::Controller;
using congestion::ControllerKind;
using congestion::controllers;
using congestion::Feedback;
using congestion::find_controller;
using congestion::Lost;
using congestion::Needs;
using congestion::Notified;
using congestion::Settings;
using congestion::Spurious;

// A controller in memory as in a channel, with guard bytes on both sides.
class Place {
 public:
  Place(const ControllerKind& kind, const Settings& settings) {
    bytes_.fill(guard);
    controller_ = kind.make(bytes_.data() + Controller::storage, settings);
  }
  ~Place() { controller_->~Controller(); }
  Controller& operator*() { return *controller_; }
  bool intact() const {
    const auto is_guard = [](std::byte byte) { return byte == guard; };
    return std::all_of(bytes_.begin(), bytes_.begin() + Controller::storage, is_guard) &&
           std::all_of(bytes_.end() - Controller::storage, bytes_.end(), is_guard);
  }

 private:
  static constexpr std::byte guard{0xa5};
  alignas(8) std::array<std::byte, 3 * Controller::storage> bytes_;
  Controller* controller_;
};

TEST_CASE("controllers are found by their names, which differ; the first one reacts to loss") {
  std::set<std::string_view> names;
  for (const ControllerKind& kind : controllers()) {
    CHECK(names.insert(kind.name).second);
    CHECK_FALSE(kind.summary.empty());
    CHECK(find_controller(kind.name) == &kind);
  }
  CHECK(names.contains("aimd"));
  CHECK(names.contains("fixed"));
  CHECK(controllers().front().name == "aimd");
  CHECK(find_controller("") == nullptr);
  CHECK(find_controller("AIMD") == nullptr);
}

TEST_CASE("however congested the path is, a packet leaves each 200 ms") {
  using namespace std::chrono_literals;
  for (const ControllerKind& kind : controllers()) {
    for (const Duration rtt : {10us, 1000us, 10'000us, 200'000us}) {
      INFO(kind.name << ", round trip " << rtt.count() << " ns");
      Place place(kind, {.packet_bytes = 4096, .bytes_per_second = 1.25e6});
      Time now{1s};
      for (int i = 0; i < 200; ++i, now += 2 * rtt) {
        const Feedback marked{.marked_packets = 1, .marked_bytes = 4096};
        (*place).handle(Acknowledged{.now = now,
                                     .rtt = rtt,
                                     .bytes = 4096,
                                     .inflight_bytes = 4096,
                                     .sample = rtt,
                                     .least_rtt = rtt,
                                     .feedback = &marked});
        (*place).handle(Notified{.now = now, .rtt = rtt, .severe = true, .last_hop = false});
        (*place).handle(Lost{.now = now, .rtt = rtt, .bytes = 4096, .timed_out = true});
      }
      (*place).request(
          {.now = now, .number = 1, .bytes = 4096, .again = false, .inflight_bytes = 0});
      // Senders with less than a packet in a round trip draw their gaps, up to twice as long.
      CHECK((*place).allowance(now).not_before <= now + 200ms);
      CHECK((*place).window_bytes() > 0);
    }
  }
}

Duration random_duration(Prng& prng) {
  return Duration(static_cast<int64_t>(prng.below(uint64_t{1} << prng.between(1, 32))));
}

// Reports an event as a channel might report it, plausible or not.
void random_event(Controller& controller, Prng& prng, Time now, uint64_t limit) {
  const Duration rtt = random_duration(prng);
  if (prng.chance(0.4)) {
    controller.request({.now = now,
                        .number = prng.next(),
                        .bytes = static_cast<uint32_t>(prng.below(9000)),
                        .again = prng.chance(0.1),
                        .inflight_bytes = prng.below(2 * limit + 2)});
  } else if (prng.chance(0.8)) {
    const Feedback feedback{.marked_packets = static_cast<uint32_t>(prng.below(300)),
                            .marked_bytes = prng.below(1 << 20),
                            .increase = prng.chance(0.5),
                            .switched = prng.chance(0.5),
                            .hint = static_cast<uint16_t>(prng.next()),
                            .switch_queue = static_cast<uint8_t>(prng.next())};
    controller.handle(Acknowledged{.now = now,
                                   .rtt = rtt,
                                   .bytes = prng.below(1 << 20),
                                   .inflight_bytes = prng.below(2 * limit + 2),
                                   .sample = random_duration(prng),
                                   .least_rtt = random_duration(prng),
                                   .feedback = prng.chance(0.8) ? &feedback : nullptr});
  } else if (prng.chance(0.6)) {
    controller.handle(
        Lost{.now = now, .rtt = rtt, .bytes = prng.below(1 << 20), .timed_out = prng.chance(0.2)});
  } else if (prng.chance(0.5)) {
    controller.handle(Notified{.now = now, .rtt = rtt, .severe = false, .last_hop = false});
  } else {
    controller.handle(Spurious{.now = now});
  }
}

// A window of less than a packet is one packet and a later departure.
uint64_t least_window(const ControllerKind& kind, const Settings& settings) {
  const bool loss_driven = kind.needs == Needs::nothing;
  return std::min<uint64_t>((loss_driven ? 4 : 1) * settings.packet_bytes, settings.limit_bytes);
}

TEST_CASE("a window never exceeds the receiver's buffer, and is never zero") {
  for (const ControllerKind& kind : controllers()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      INFO(kind.name << " seed " << seed);
      Prng prng(seed);
      const Settings settings{.packet_bytes = static_cast<uint32_t>(prng.between(1, 9000)),
                              .limit_bytes = prng.between(1, uint64_t{1} << prng.between(1, 32)),
                              .bytes_per_second = prng.chance(0.5) ? 12.5e9 : 0};
      Place place(kind, settings);
      Controller& controller = *place;
      Time now{};
      for (int i = 0; i < 1000; ++i) {
        REQUIRE(controller.window_bytes() <= settings.limit_bytes);
        REQUIRE(controller.window_bytes() >= least_window(kind, settings));
        REQUIRE(controller.allowance(now).window_bytes == controller.window_bytes());
        now += Duration(static_cast<int64_t>(prng.below(uint64_t{1} << prng.between(1, 34))));
        random_event(controller, prng, now, settings.limit_bytes);
      }
      REQUIRE(place.intact());
    }
  }
}

// A sender that waits for its departure times, whatever is reported: within its window, its packets
// leave no faster than the link of the host, but for the lateness that it may make up for.
TEST_CASE("whatever is reported, a paced sender does not exceed its link") {
  using namespace std::chrono_literals;
  constexpr double rate = 1e9;
  const Settings settings{.packet_bytes = 4096, .bytes_per_second = rate, .base_rtt = 100us};
  for (const ControllerKind& kind : controllers()) {
    if (!kind.paces) continue;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      INFO(kind.name << " seed " << seed);
      Prng prng(seed);
      Place place(kind, settings);
      const Time begun{1s};
      Time now = begun;
      uint64_t sent = 0;
      for (int i = 0; i < 5000; ++i) {
        now = std::max(now, (*place).allowance(now).not_before);
        (*place).request({.now = now,
                          .number = static_cast<uint64_t>(i),
                          .bytes = 4096,
                          .again = false,
                          .inflight_bytes = 4096});
        // The gap of a window below a packet may be half as long as the next one is longer.
        const double may = rate * static_cast<double>((now - begun).count()) * 1e-9;
        REQUIRE(static_cast<double>(sent) <= may + 2 * 4096);
        sent += 4096;
        for (uint64_t events = prng.below(3); events > 0; --events) {
          const Feedback forged{.marked_packets = static_cast<uint32_t>(prng.below(2) * 255),
                                .marked_bytes = prng.below(2) * UINT32_MAX,
                                .increase = prng.chance(0.5),
                                .switched = prng.chance(0.5),
                                .hint = static_cast<uint16_t>(prng.next()),
                                .switch_queue = static_cast<uint8_t>(prng.next())};
          (*place).handle(Acknowledged{.now = now,
                                       .rtt = 100us,
                                       .bytes = 4096,
                                       .inflight_bytes = (*place).window_bytes(),
                                       .sample = 100us,
                                       .least_rtt = 100us,
                                       .feedback = &forged});
        }
      }
    }
  }
}

TEST_CASE("the same events give the same window and the same departures") {
  for (const ControllerKind& kind : controllers()) {
    INFO(kind.name);
    const Settings settings{.limit_bytes = 1 << 20, .seed = 5};
    Place one(kind, settings), two(kind, settings);
    Prng first(9), second(9);
    Time now{};
    for (int i = 0; i < 1000; ++i) {
      now += Duration(i);
      random_event(*one, first, now, settings.limit_bytes);
      random_event(*two, second, now, settings.limit_bytes);
      REQUIRE((*one).window_bytes() == (*two).window_bytes());
      REQUIRE((*one).allowance(now).not_before == (*two).allowance(now).not_before);
    }
  }
}

TEST_CASE("a controller that does not pace lets packets leave at any time, and asks for nothing") {
  for (const ControllerKind& kind : controllers()) {
    if (kind.paces) continue;
    INFO(kind.name);
    Place place(kind, {});
    Prng prng(3);
    for (int i = 0; i < 100; ++i) {
      random_event(*place, prng, Time(Duration(i)), 4 << 20);
      CHECK((*place).allowance(Time{}).not_before == Time::min());
      CHECK((*place).request(
                {.now = Time{}, .number = 1, .bytes = 1, .again = false, .inflight_bytes = 0}) ==
            congestion::Signal{});
    }
  }
}

TEST_CASE("the fixed window is the receiver's buffer, whatever happens") {
  Place place(*find_controller("fixed"), {.packet_bytes = 1000, .limit_bytes = 12'345});
  Prng prng(1);
  for (int i = 0; i < 100; ++i) {
    CHECK((*place).window_bytes() == 12'345);
    random_event(*place, prng, Time(Duration(i)), 12'345);
  }
}

}  // namespace
}  // namespace urma::test
