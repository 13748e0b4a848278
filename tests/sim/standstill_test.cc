// SPDX-License-Identifier: Apache-2.0
// Hosts that are not scheduled for a while. No packet is lost meanwhile, so few are sent again.

#include <array>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

enum class Stands : uint8_t { none, receiver, both };

struct Load {
  const char* name;
  size_t work_bytes;
  size_t depth;  // outstanding works
};
constexpr Load bulk{"bulk", 64 * 1024, 32};
constexpr Load small{"small", 64, 4};
constexpr Load single{"single", 64, 1};

struct Case {
  const Load& load;
  Stands stands_still = Stands::both;
  Duration runs = 40ms;  // average time between two standstills
  Duration least = 1ms;
  Duration most = 20ms;
  std::string wire = "delay=10us&rate=2Gbit&queue=16M";
  uint64_t seed = 1;
};

struct Outcome {
  uint64_t sent = 0;  // data packets, in both directions
  uint64_t again = 0;
  uint64_t duplicates = 0;
  uint64_t timeouts = 0;
  uint64_t works = 0;

  double spurious() const { return static_cast<double>(duplicates) / static_cast<double>(sent); }
};

// One host writes to the other, always with the same number of works outstanding, while hosts stop
// at random.
class Standstills {
 public:
  explicit Standstills(const Case& what)
      : what_(what),
        prng_(what.seed),
        hosts_("standstill-" + std::string(what.load.name), what.seed),
        sides_{Side{hosts_.start(what.wire)}, Side{hosts_.start(what.wire)}},
        target_(sides_[0].host.device.import(sides_[1].host.line).value()),
        bytes_(what.load.work_bytes) {
    sides_[0].stalls = what.stands_still == Stands::both;
    sides_[1].stalls = what.stands_still != Stands::none;
  }

  Outcome run(Duration time) {
    post(1);
    REQUIRE(only_status(sides_[0].host.jetty, 1s) == Status::ok);
    for (Side& side : sides_) side.next = hosts_.now() + pause();
    const Outcome before = outcome();
    post(what_.load.depth);
    const Time until = hosts_.now() + time;
    while (hosts_.now() < until) {
      hosts_.run_for(5us);
      for (Side& side : sides_) change(side);
      if (!sides_[0].stopped) poll();
    }
    const Outcome after = outcome();
    return {after.sent - before.sent, after.again - before.again,
            after.duplicates - before.duplicates, after.timeouts - before.timeouts,
            after.works - before.works};
  }

 private:
  struct Side {
    SimHosts::Host host;
    bool stalls = false;
    bool stopped = false;
    Time next = {};
  };

  Duration pause() {
    const auto mean = static_cast<uint64_t>(what_.runs.count());
    return Duration(static_cast<int64_t>(prng_.between(mean / 2, mean * 3 / 2)));
  }
  void change(Side& side) {
    if (!side.stalls || hosts_.now() < side.next) return;
    side.stopped = !side.stopped;
    hosts_.stop(side.host, side.stopped);
    const auto still = prng_.between(static_cast<uint64_t>(what_.least.count()),
                                     static_cast<uint64_t>(what_.most.count()));
    side.next = hosts_.now() + (side.stopped ? Duration(static_cast<int64_t>(still)) : pause());
  }
  void post(size_t count) {
    const std::vector<Work> works(count, write(bytes_, target_.segment));
    REQUIRE(sides_[0].host.jetty.post(works) == count);
  }
  void poll() {
    std::array<Completion, 64> out;
    const size_t count = sides_[0].host.jetty.poll(out);
    for (const Completion& done : std::span(out).first(count)) REQUIRE(done.status == Status::ok);
    works_ += count;
    if (count > 0) post(count);
  }
  Outcome outcome() {
    Outcome out{.works = works_};
    for (Side& side : sides_) {
      const Statistics seen = side.host.device.stats().value();
      out.sent += seen.packets_sent;
      out.again += seen.retransmitted;
      out.duplicates += seen.duplicates;
      out.timeouts += seen.retransmission_timeouts;
    }
    return out;
  }

  const Case what_;
  Prng prng_;
  SimHosts hosts_;
  std::array<Side, 2> sides_;
  Imported target_;
  std::vector<std::byte> bytes_;
  uint64_t works_ = 0;
};

Outcome run(const Case& what, Duration time) {
  Standstills world(what);
  return world.run(time);
}

// Without adapting to late peers, 4 % of the packets of the bulk stream were sent again.
TEST_CASE("standstills: hosts that stop for 1 to 20 ms cause at most 0.2 % retransmissions",
          "[rates]") {
  for (const Load* load : {&bulk, &small, &single}) {
    for (const Stands who : {Stands::receiver, Stands::both}) {
      for (const uint64_t seed : {1, 6}) {
        INFO(load->name << ", both: " << (who == Stands::both) << ", seed " << seed);
        const Outcome seen = run({.load = *load, .stands_still = who, .seed = seed}, 3s);
        CHECK(seen.works > 1000);
        CHECK(seen.duplicates == seen.again);
        CHECK(seen.spurious() <= 0.002);
      }
    }
  }
}

// A host that runs again finds more acknowledgements than one pass reads. It reads all of them
// before it handles time-outs. Without this rule 0.49 % of the packets were sent again.
TEST_CASE("standstills: a host reads all packets that have come before it judges time-outs") {
  const Outcome seen = run({.load = bulk,
                            .stands_still = Stands::receiver,
                            .runs = 4ms,
                            .least = 4ms,
                            .most = 12ms,
                            .seed = 2},
                           2s);
  CHECK(seen.works > 1000);
  CHECK(seen.spurious() <= 0.0005);
}

// The receiver is stopped for a fifth of the time, so the rate may be at most a fifth lower.
TEST_CASE("standstills: a bulk stream continues with its previous window", "[rates]") {
  const Outcome steady = run({.load = bulk, .stands_still = Stands::none}, 1s);
  const Outcome seen = run({.load = bulk, .stands_still = Stands::receiver}, 1s);
  CHECK(seen.works * 10 > steady.works * 9);
}

// A sender waits longer for a late peer only while no packets are lost.
TEST_CASE("standstills: if packets are lost, a late peer costs no more than its standstills",
          "[rates]") {
  const std::string wire = "delay=10us&rate=2Gbit&queue=16M&loss=1%";
  const Outcome steady = run({.load = small, .stands_still = Stands::none, .wire = wire}, 500ms);
  const Outcome seen = run({.load = small, .stands_still = Stands::receiver, .wire = wire}, 500ms);
  CHECK(seen.works * 100 > steady.works * 75);
  CHECK(seen.again > 0);
}

}  // namespace
}  // namespace urma::test
