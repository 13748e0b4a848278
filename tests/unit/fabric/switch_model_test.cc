// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "fabric/switch.h"
#include "tests/catch.h"
#include "tests/fresh_seed.h"
#include "tests/sanitized.h"
#include "tests/unit/fabric/switch_parts.h"

namespace urma::fabric {
namespace {

using Wide = unsigned __int128;

// A switch with one lane, as simple as possible: a list of the packets of each port, with their
// exact departures in units of 1 / rate nanoseconds.
class OneLaneModel {
 public:
  OneLaneModel(const SwitchSettings& settings, const SwitchPort& port)
      : settings_(settings),
        queue_bytes_(port.queue_bytes),
        rate_(port.bytes_per_second),
        ports_(settings.ports) {}

  uint64_t queue(uint32_t port, Time now) const {
    uint64_t bytes = 0;
    for (const Waiting& it : ports_[port]) bytes += departure(it) > now ? it.bytes : 0;
    return bytes;
  }
  uint64_t used(Time now) const {
    uint64_t bytes = 0;
    for (uint32_t port = 0; port < ports_.size(); ++port) bytes += queue(port, now);
    return bytes;
  }
  Drop admit(uint32_t port, uint32_t bytes, Time now) const {
    const uint64_t queued = queue(port, now);
    if (queued + bytes > queue_bytes_) return Drop::queue_full;
    uint64_t all = 0;
    for (uint32_t each = 0; each < ports_.size(); ++each) all += packets(each, now);
    if (packets(port, now) >= settings_.packets - all) return Drop::no_slot;
    const uint64_t free = settings_.buffer_bytes - used(now);
    if (bytes > free) return Drop::buffer_full;
    if (settings_.share > 0 &&
        static_cast<double>(queued + bytes) > settings_.share * static_cast<double>(free)) {
      return Drop::queue_full;
    }
    return Drop::none;
  }
  Time add(uint32_t port, uint32_t bytes, Time now) {
    std::vector<Waiting>& waiting = ports_[port];
    Wide begin = Wide{static_cast<uint64_t>(now.time_since_epoch().count())} * rate_;
    if (!waiting.empty() && departure(waiting.back()) > now) begin = waiting.back().departs;
    waiting.push_back({begin + Wide{bytes} * 1'000'000'000, bytes});
    return departure(waiting.back());
  }

 private:
  struct Waiting {
    Wide departs;
    uint32_t bytes;
  };
  Time departure(const Waiting& it) const {
    return Time(Duration(static_cast<int64_t>((it.departs + rate_ - 1) / rate_)));
  }
  uint64_t packets(uint32_t port, Time now) const {
    return static_cast<uint64_t>(std::ranges::count_if(
        ports_[port], [&](const Waiting& it) { return departure(it) > now; }));
  }

  SwitchSettings settings_;
  uint64_t queue_bytes_;
  uint64_t rate_;
  std::vector<std::vector<Waiting>> ports_;
};

SwitchSettings some_settings(Prng& prng) {
  SwitchSettings settings;
  settings.ports = static_cast<uint32_t>(prng.between(2, 6));
  settings.addresses = 64;
  settings.packets = prng.chance(0.2) ? 8 : 4096;
  settings.buffer_bytes = prng.between(5000, 60'000);
  settings.share = prng.chance(0.5) ? 0.25 * static_cast<double>(prng.between(1, 8)) : 0;
  settings.histograms = prng.chance(0.5);
  return settings;
}

SwitchPort some_port(Prng& prng) {
  return {.bytes_per_second = prng.between(500'000'000, 4'000'000'000),
          .queue_bytes = prng.chance(0.5) ? prng.between(3000, 20'000) : UINT64_MAX,
          .marking = {.from_bytes = prng.between(0, 10'000)}};
}

void compare_with_model(uint64_t seed) {
  INFO("seed " << seed);
  Prng prng(seed);
  const SwitchSettings settings = some_settings(prng);
  const SwitchPort port = some_port(prng);
  Switch at = switch_of_hosts(settings, port);
  OneLaneModel model(settings, port);
  bool same = true;
  uint64_t marked = 0;
  int64_t ns = 0;
  for (int step = 0; step < 300; ++step) {
    ns += prng.chance(0.3) ? 0 : static_cast<int64_t>(prng.below(1200));
    const Time now = at_ns(ns);
    const auto from = static_cast<uint32_t>(prng.below(settings.ports));
    const auto to = static_cast<uint32_t>(prng.below(prng.chance(0.5) ? 2 : settings.ports));
    Packet packet = packet_to(to, from, static_cast<uint32_t>(prng.between(1, 4096)));
    packet.ecn = prng.chance(0.7) ? Ecn::ect0 : Ecn::not_ect;
    const bool marks = packet.ecn == Ecn::ect0 && model.queue(to, now) > port.marking.from_bytes;
    const Packet before = packet;
    const Arrival arrival = at.arrive(packet, from, now);
    const Drop expected = model.admit(to, packet.bytes, now);
    same = same && arrival.drop == expected && arrival.port == to;
    if (expected == Drop::none) {
      same = same && arrival.departs == model.add(to, packet.bytes, now);
      same = same && (packet.ecn == Ecn::ce) == marks && packet.hops == 1;
      marked += marks;
    } else {
      same = same && packet == before;
    }
    same = same && at.queue_bytes(to, 0) == model.queue(to, now);
    same = same && model.used(now) <= settings.buffer_bytes;
    same = same && at.used_bytes() <= settings.buffer_bytes;
  }
  REQUIRE(same);
  const SwitchSum sum(at, at_ns(ns));
  CHECK(sum.queued_bytes == model.used(at_ns(ns)));
  CHECK(sum.received_bytes == sum.left_bytes + sum.dropped_bytes + sum.queued_bytes);
  const SwitchSum end(at, never);
  CHECK(end.queued_bytes == 0);
  CHECK(end.received_packets == end.left_packets + end.dropped_packets);
  CHECK(end.received_bytes == end.left_bytes + end.dropped_bytes);
  CHECK(at.used_bytes() == 0);
  uint64_t counted = 0;
  for (uint32_t i = 0; i < settings.ports; ++i) counted += at.counters(i, 0).marked;
  CHECK(counted == marked);
}

TEST_CASE("a switch admits, marks and forwards as a list of packets does") {
  for (uint64_t seed = 0; seed < (test::sanitized ? 200 : 1000); ++seed) {
    compare_with_model(seed);
  }
  compare_with_model(test::fresh_seed());
}

// ---- several lanes

// A packet that has left, and when it had arrived.
struct Passed {
  Time arrived;
  Time departs;
  uint32_t port;
  Packet packet;
};

struct LaneTraffic {
  SwitchSettings settings;
  std::vector<Passed> passed;  // in the order of departure at each port
  std::vector<Time> arrivals;  // by handle
};

SwitchSettings some_lanes(Prng& prng) {
  SwitchSettings settings;
  settings.ports = 3;
  settings.lanes = static_cast<uint32_t>(prng.between(2, 16));
  settings.addresses = 8;
  settings.buffer_bytes = prng.between(20'000, 100'000);
  settings.service = prng.chance(0.5) ? Service::strict : Service::round_robin;
  return settings;
}

// Calls `decide` or `collect` for all departures that are due by `until`.
void serve(Switch& at, LaneTraffic& traffic, Time until) {
  const bool collects = at.settings().keeps == Keeps::until_collected;
  for (uint32_t port = 0; port < at.settings().ports; ++port) {
    Departure departure;
    for (Time due = at.due(port); due <= until && due != never; due = at.due(port)) {
      const bool any =
          collects ? at.collect(port, due, departure) : at.decide(port, due, departure);
      if (!any) continue;
      const Packet& packet = departure.packet;
      traffic.passed.push_back({traffic.arrivals[packet.handle], departure.departs, port, packet});
    }
  }
}

LaneTraffic run_lanes(uint64_t seed, Keeps keeps) {
  Prng prng(seed);
  LaneTraffic traffic;
  traffic.settings = some_lanes(prng);
  traffic.settings.keeps = keeps;
  Switch at = switch_of_hosts(traffic.settings);
  int64_t ns = 0;
  for (int step = 0; step < 300; ++step) {
    ns += static_cast<int64_t>(prng.below(1500));
    serve(at, traffic, at_ns(ns));
    const auto lane = static_cast<uint8_t>(prng.below(traffic.settings.lanes));
    const auto to = static_cast<uint32_t>(prng.below(2));
    Packet packet = packet_to(to, 2, static_cast<uint32_t>(prng.between(1, 4096)), lane);
    packet.handle = traffic.arrivals.size();
    traffic.arrivals.push_back(at_ns(ns));
    const Arrival arrival = at.arrive(packet, 2, at_ns(ns));
    if (arrival.departs != never && keeps == Keeps::until_decided) {
      traffic.passed.push_back({at_ns(ns), arrival.departs, arrival.port, packet});
    }
  }
  serve(at, traffic, never);
  const SwitchSum sum(at, never);
  CHECK(sum.queued_bytes == 0);
  CHECK(sum.received_packets == sum.left_packets + sum.dropped_packets);
  CHECK(sum.received_bytes == sum.left_bytes + sum.dropped_bytes);
  CHECK(sum.left_packets == traffic.passed.size());
  return traffic;
}

std::vector<Passed> of_port(const LaneTraffic& traffic, uint32_t port) {
  std::vector<Passed> passed;
  for (const Passed& it : traffic.passed) {
    if (it.port == port) passed.push_back(it);
  }
  return passed;
}

// The line of each port has a rate of a byte per nanosecond, so a packet begins `bytes` before it
// has left.
Time beginning(const Passed& it) { return it.departs - Duration(it.packet.bytes); }

// Whether packets of a lane keep their order, the line carries one packet at a time, and it is idle
// only if nothing waits.
bool is_orderly(const std::vector<Passed>& passed) {
  std::vector<int64_t> last(most_lanes, -1);
  Time free{};
  for (const Passed& it : passed) {
    const auto handle = static_cast<int64_t>(it.packet.handle);
    if (handle <= last[it.packet.lane] || beginning(it) < free) return false;
    if (beginning(it) != std::max(free, it.arrived)) return false;
    last[it.packet.lane] = handle;
    free = it.departs;
  }
  return true;
}

// Whether no packet begins while one of a higher lane waits that arrived before.
bool is_strict(const std::vector<Passed>& passed) {
  for (size_t i = 0; i < passed.size(); ++i) {
    for (size_t later = i + 1; later < passed.size(); ++later) {
      const bool waits = passed[later].arrived < beginning(passed[i]);
      if (waits && passed[later].packet.lane > passed[i].packet.lane) return false;
    }
  }
  return true;
}

TEST_CASE("packets of a lane keep their order, and the highest lane is served first") {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    const LaneTraffic traffic = run_lanes(seed, Keeps::until_decided);
    bool good = true;
    for (const uint32_t port : {0u, 1u}) {
      const std::vector<Passed> passed = of_port(traffic, port);
      good = good && is_orderly(passed);
      if (traffic.settings.service == Service::strict) good = good && is_strict(passed);
    }
    REQUIRE(good);
  }
}

TEST_CASE("a caller that collects packets gets the departures that a simulator is told") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const LaneTraffic decided = run_lanes(seed, Keeps::until_decided);
    const LaneTraffic collected = run_lanes(seed, Keeps::until_collected);
    bool same = decided.passed.size() == collected.passed.size();
    for (const uint32_t port : {0u, 1u}) {
      const std::vector<Passed> one = of_port(decided, port);
      const std::vector<Passed> other = of_port(collected, port);
      same = same && std::equal(one.begin(), one.end(), other.begin(), other.end(),
                                [](const Passed& a, const Passed& b) {
                                  return a.departs == b.departs && a.packet == b.packet;
                                });
    }
    REQUIRE(same);
  }
}

}  // namespace
}  // namespace urma::fabric
