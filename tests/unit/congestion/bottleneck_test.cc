// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/congestion/bottleneck.h"

#include <cmath>
#include <cstdio>

#include "base/prng.h"
#include "congestion/guard.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

Time rounds(int64_t count) { return Time(count * BottleneckOptions{}.base_rtt); }

struct Result {
  double utilisation, fairness, median, tail, peak, peak_before;
};

// Lets `senders` begin at once, and counts from round 40 to round 440.
Result steady(const BottleneckOptions& options, int senders) {
  Bottleneck run(options);
  for (int i = 0; i < senders; ++i) run.add({});
  run.run(rounds(40));
  const double before = run.peak_packets();
  run.begin_count();
  run.run(rounds(440));
  const Result result{run.utilisation(),      run.fairness(),     run.queue_packets(0.5),
                      run.queue_packets(.99), run.peak_packets(), before};
  std::printf("  %-7.*s %-7.*s %5d  %.3f  %.4f %6.1f %6.1f %6.1f %7.1f\n",
              static_cast<int>(options.controller.size()), options.controller.data(),
              static_cast<int>(options.hops[0].meter.size()), options.hops[0].meter.data(), senders,
              result.utilisation, result.fairness, result.median, result.tail, result.peak, before);
  return result;
}

constexpr double bdp = 24.4;  // packets: 100 Gb/s, 8 us

BottleneckOptions switched(std::string_view name) {
  return {.controller = name, .hops = {{.meter = name}}};
}

BottleneckOptions unswitched(std::string_view name) {
  return {.controller = name, .hops = {{.meter = {}}}};
}

TEST_CASE("caqm_r: the port is used, shares are equal, and queues are short") {
  std::printf("  control meter   flows utilis. Jain     p50    p99   peak  at first (packets)\n");
  for (const int senders : {1, 2, 8, 16, 32, 128}) {
    const Result result = steady(switched("caqm_r"), senders);
    INFO(senders << " senders");
    CHECK(result.utilisation >= 0.97);
    CHECK(result.fairness >= 0.99);
    CHECK(result.tail <= std::max(10.0, senders / 4.0));
    CHECK(result.peak_before <= std::max(16.0, senders + 8.0));
    CHECK(result.peak <= result.peak_before);
  }
}

TEST_CASE("caqm_r: a thousand senders with less than a fortieth of a packet each share a port") {
  BottleneckOptions options = switched("caqm_r");
  Bottleneck run(options);
  for (int i = 0; i < 1000; ++i) run.add({});
  run.run(rounds(240));
  CHECK(run.peak_packets() <= 1008);
  run.begin_count();
  run.run(rounds(640));
  CHECK(run.utilisation() >= 0.92);
  CHECK(run.fairness() >= 0.98);
}

TEST_CASE("caqm_r: at 400 Gb/s and 4 us, too") {
  BottleneckOptions options = switched("caqm_r");
  options.hops[0].bytes_per_second = options.link_bytes_per_second = 50e9;
  options.base_rtt = 4us;
  for (const int senders : {2, 8, 32, 128}) {
    const Result result = steady(options, senders);
    CHECK(result.utilisation >= 0.96);
    CHECK(result.fairness >= 0.99);
    CHECK(result.peak_before <= std::max(16.0, senders + 8.0));
  }
}

TEST_CASE("caqm_w: the port is used, shares are equal, and queues are bounded") {
  for (const int senders : {1, 2, 8, 16, 32, 128}) {
    const Result result = steady(switched("caqm_w"), senders);
    INFO(senders << " senders");
    CHECK(result.utilisation >= 0.95);
    CHECK(result.fairness >= 0.95);
    CHECK(result.tail <= std::max<double>(2 * bdp, senders));
  }
}

TEST_CASE("without a UB switch, the guard keeps the queue to at most 6 BDP") {
  for (const std::string_view name : {"caqm_r", "caqm_w"}) {
    for (const int senders : {1, 2, 8, 32, 128}) {
      const Result result = steady(unswitched(name), senders);
      INFO(name << ", " << senders << " senders");
      CHECK(result.utilisation >= 0.95);
      CHECK(result.fairness >= 0.9);
      CHECK(result.tail <= 6 * bdp);
    }
  }
}

TEST_CASE("with ECN marks of a switch without a meter the queue is about the mark's") {
  for (const std::string_view name : {"caqm_r", "caqm_w"}) {
    BottleneckOptions options = unswitched(name);
    options.hops[0].mark_bytes = 8 * 4096;
    for (const int senders : {2, 8}) {
      const Result result = steady(options, senders);
      CHECK(result.utilisation >= 0.7);
      CHECK(result.tail <= 2 * bdp);
    }
  }
}

TEST_CASE("behind a switch, a slower hop without a meter is guarded by the queue echo") {
  for (const std::string_view name : {"caqm_r", "caqm_w"}) {
    for (const int senders : {2, 8, 32, 128}) {
      Bottleneck run({.controller = name, .hops = {{.meter = name}, {.bytes_per_second = 6.25e9}}});
      for (int i = 0; i < senders; ++i) run.add({});
      run.run(rounds(40));
      run.begin_count();
      run.run(rounds(440));
      INFO(name << ", " << senders << " senders");
      CHECK(run.utilisation() >= 0.7);
      CHECK(run.queue_packets(0.99, 1) <= 6 * bdp / 2);
    }
  }
}

// Returns the round trips after which, in each five of them, shares are equal and the port is used.
int settled_after(Bottleneck& run, int from, int until) {
  int settled = 0;
  for (int at = from; at < until; at += 5) {
    run.begin_count();
    run.run(rounds(at + 5));
    if (run.fairness() < 0.95 || run.utilisation() < 0.85) settled = at + 5 - from;
  }
  return settled;
}

TEST_CASE("caqm_r: shares are equal 15 round trips after a flow joins, and 20 after one leaves") {
  Bottleneck run(switched("caqm_r"));
  constexpr int flows = 8, phase = 100;
  for (int i = 0; i < flows; ++i) {
    run.add({.start = rounds(phase * i), .stop = rounds(phase * (flows + i))});
  }
  for (int i = 0; i < 2 * flows - 1; ++i) {
    const int settled = settled_after(run, phase * i, phase * (i + 1));
    std::printf("  %s %d: settled after %d round trips\n", i < flows ? "join" : "leave", i % flows,
                settled);
    CHECK(settled <= (i < flows ? 15 : 20));
  }
}

// One flow passes three ports, with one, two and four others: max-min is 0.2, and 0.8, 0.4, 0.2.
struct Damage {
  double during, least, after;  // shares of the line; `least`: of the slowest sender
};

// A host sends packets of this size with the lowest rate code, so many in each round trip, for 400
// round trips. `after` is the utilisation so many round trips after it has stopped.
Damage forge(int senders, uint32_t bytes, int each_round, int64_t recovers) {
  Bottleneck run(switched("caqm_r"));
  for (int i = 0; i < senders; ++i) run.add({});
  run.run(rounds(200));
  for (int i = 0; i < 400 * each_round; ++i) {
    // The senders have slowed by then.
    if (i == 200 * each_round) run.begin_count();
    run.forge(bytes, {.hint = 1});
    run.run(run.now() + BottleneckOptions{}.base_rtt / each_round);
  }
  Damage damage{.during = run.utilisation(), .least = 1, .after = 0};
  for (int i = 0; i < senders; ++i)
    damage.least = std::min(damage.least, run.share(static_cast<size_t>(i)));
  run.run(rounds(600 + recovers));
  run.begin_count();
  run.run(rounds(700 + recovers));
  damage.after = run.utilisation();
  return damage;
}

// Each forged packet counts as 256 flows, the most that one can. The port cannot tell them from as
// many channels, to which it would give the same shares.
TEST_CASE("caqm_r: a host that forges low rates takes the shares of 256 flows for each packet") {
  for (const int senders : {4, 32}) {
    for (const int each_round : {1, 10}) {
      INFO(senders << " senders, " << each_round << " forged packets in a round trip");
      const Damage damage = forge(senders, 4096, each_round, each_round == 1 ? 64 : 1000);
      const double left = senders / (senders + 256.0 * each_round);
      CHECK(damage.during > 0.7 * left);
      CHECK(damage.least > 0);
      CHECK(damage.after > 0.9);
    }
  }
}

// A forged packet of 64 B counts as 6 flows, which do not use their shares. The port was overloaded
// when the forged packets began.
TEST_CASE("caqm_r: after an overload, a port gives flows the shares that others do not use") {
  CHECK(forge(4, 64, 1, 64).during > 0.9);
}

// Each forged packet names 10 Mb/s and asks for more. All of them have 5 % of the line, and count
// as 500 flows that do not use their shares.
TEST_CASE("caqm_r: forged requests hold back what they do not use for a while only") {
  for (const int senders : {2, 8}) {
    Bottleneck run(switched("caqm_r"));
    for (int i = 0; i < senders; ++i) run.add({});
    run.run(rounds(60));
    const Duration apart = 102ns;
    for (Time at = rounds(60); at < rounds(3000); at += apart) {
      if (at >= rounds(2000) && at < rounds(2000) + apart) run.begin_count();
      run.run(at);
      run.forge(64, {.increase = true, .hint = 1});
    }
    INFO(senders << " senders");
    CHECK(run.utilisation() > 0.5);
  }
}

TEST_CASE("caqm_r: flows that are limited elsewhere leave their share to others") {
  Bottleneck run({.hops = {{.meter = "caqm_r"}, {.meter = "caqm_r"}, {.meter = "caqm_r"}}});
  run.add({});
  for (size_t hop = 0; hop < 3; ++hop) {
    for (int i = 0; i < 1 << hop; ++i) run.add({.first_hop = hop, .last_hop = hop});
  }
  run.run(rounds(100));
  run.begin_count();
  run.run(rounds(500));
  std::printf("  caqm_r  parking lot: %.3f and %.3f, %.3f, %.3f\n", run.share(0), run.share(1),
              run.share(2), run.share(4));
  CHECK(run.share(0) >= 0.17);
  CHECK(run.share(1) >= 0.75);
  CHECK(run.share(2) >= 0.36);
  CHECK(run.share(4) >= 0.17);
}

// A flow of small messages does not use its share, and does not ask for more.
TEST_CASE("caqm_r: flows with little to send leave their share to others") {
  struct Case {
    int bulk, small;
    uint64_t bytes;
    Duration each;
  };
  for (const Case& one : {Case{2, 10, 1000, 20us}, Case{2, 50, 150, 20us}, Case{2, 50, 1000, 20us},
                          Case{2, 200, 1000, 100us}, Case{8, 50, 1000, 20us}}) {
    INFO(one.bulk << " flows beside " << one.small << " of " << one.bytes << " B each time");
    Bottleneck run(switched("caqm_r"));
    for (int i = 0; i < one.bulk; ++i) run.add({});
    for (int i = 0; i < one.small; ++i) {
      run.add({.start = Time(i * one.each / one.small), .bytes = one.bytes, .each = one.each});
    }
    run.run(rounds(200));
    run.begin_count();
    run.run(rounds(600));
    CHECK(run.utilisation() >= 0.9);
    CHECK(run.queue_packets(0.99) <= 8);
  }
}

TEST_CASE("caqm_r: flows with round trips from 4 to 64 us have equal shares") {
  for (const int senders : {8, 32}) {
    Bottleneck run(switched("caqm_r"));
    for (int i = 0; i < senders; ++i) run.add({.base_rtt = Duration(4000 << i % 5)});
    run.run(rounds(400));
    run.begin_count();
    run.run(rounds(1000));
    CHECK(run.fairness() >= 0.995);
    CHECK(run.utilisation() >= 0.96);
  }
}

double incast(const BottleneckOptions& options, int senders, uint64_t bytes, Time until) {
  Bottleneck run(options);
  for (int i = 0; i < senders; ++i) run.add({.bytes = bytes});
  run.run(until);
  Time last{};
  for (const auto& sender : run.senders()) last = std::max(last, sender.finished);
  CHECK(run.peak_packets() <= std::max(16.0, senders + 8.0));
  if (last == never) return 1e9;
  const double ideal = static_cast<double>(bytes) * senders / options.hops[0].bytes_per_second;
  return congestion::seconds(last.time_since_epoch()) / ideal;
}

TEST_CASE("caqm_r: a finite incast takes little longer than the port needs") {
  for (const auto& [senders, bytes, most] :
       {std::tuple{16, 2'000'000, 1.05}, {60, 500'000, 1.06}, {127, 2'000'000, 1.035}}) {
    const double took = incast(switched("caqm_r"), senders, bytes, Time(1s));
    std::printf("  caqm_r  incast %d x %d: %.3f of the ideal\n", senders, bytes, took);
    CHECK(took <= most);
  }
}

// Two flows of DCQCN at 40 Gb/s. Which one is ahead depends on chance, so their means count.
TEST_CASE("dcqcn: two flows at 40 Gb/s settle at 20 Gb/s each") {
  double first = 0, second = 0;
  constexpr int seeds = 20;
  for (int seed = 1; seed <= seeds; ++seed) {
    BottleneckOptions options{.controller = "dcqcn",
                              .hops = {{.bytes_per_second = 5e9,
                                        .mark_bytes = 5'000,
                                        .mark_most_bytes = 200'000,
                                        .most_chance = 0.01}},
                              .link_bytes_per_second = 5e9,
                              .packet_bytes = 1024,
                              .seed = static_cast<uint32_t>(seed)};
    Bottleneck run(options);
    run.add({});
    run.add({});
    run.run(Time(20ms));
    run.begin_count();
    run.run(Time(60ms));
    first += run.share(0) * 40 / seeds;
    second += run.share(1) * 40 / seeds;
  }
  std::printf("  dcqcn   %.2f and %.2f Gb/s\n", first, second);
  CHECK(std::abs(first - 20) <= 1);
  CHECK(std::abs(second - 20) <= 1);
}

TEST_CASE("ldcp: the port is used, and the queue is about the mark's") {
  for (const int senders : {1, 2, 8}) {
    BottleneckOptions options = unswitched("ldcp");
    options.hops[0].mark_bytes = 16 * 4096;
    const Result result = steady(options, senders);
    INFO(senders << " senders");
    CHECK(result.utilisation >= 0.95);
    CHECK(result.fairness >= 0.9);
    CHECK(result.tail <= 2 * bdp);
  }
}

// Whatever acknowledgements are lost, late or merged, and whatever round trips flows have: no rate
// is zero or above the link, and each flow ends.
TEST_CASE("fuzz: rates stay between zero and the link, and each flow ends") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Prng prng(seed);
    const std::string_view name = prng.chance(0.5) ? "caqm_r" : "caqm_w";
    BottleneckOptions options = prng.chance(0.7) ? switched(name) : unswitched(name);
    if (prng.chance(0.3)) options.hops.push_back({.bytes_per_second = 5e9, .mark_bytes = 100'000});
    options.packets_per_ack = static_cast<uint32_t>(prng.between(1, 6));
    options.loss = prng.chance(0.3) ? 0.01 : 0;
    options.ack_loss = prng.chance(0.3) ? 0.05 : 0;
    options.ack_jitter = Duration(prng.chance(0.3) ? 20'000 : 0);
    options.tell_base = prng.chance(0.5);
    options.seed = static_cast<uint32_t>(seed);
    Bottleneck run(options);
    const uint64_t senders = prng.between(1, 24);
    for (uint64_t i = 0; i < senders; ++i) {
      run.add({.start = Time(Duration(static_cast<int64_t>(prng.below(200'000)))),
               .bytes = prng.between(1, 400'000),
               .base_rtt = Duration(static_cast<int64_t>(prng.between(4'000, 64'000)))});
    }
    INFO("seed " << seed);
    for (Time at{}; at < Time(20ms); at += 250us) {
      run.run(at);
      for (const auto& sender : run.senders()) {
        const auto& guarded = dynamic_cast<const congestion::Guarded&>(*sender.controller);
        REQUIRE(guarded.bytes_per_second() > 0);
        REQUIRE(guarded.bytes_per_second() <= options.link_bytes_per_second * 1.0001);
      }
    }
    run.run(Time(5s));
    for (const auto& sender : run.senders()) REQUIRE(sender.finished != never);
  }
}

}  // namespace
}  // namespace urma::test
