// SPDX-License-Identifier: Apache-2.0
// How the Jetties of one device share a channel: small works do not wait behind large ones, and a
// Jetty that floods leaves the others their share.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/catch.h"
#include "tests/sanitized.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// 100 Gb/s, a round trip of 20 us, and a window of twice the data that is then in flight.
constexpr const char* line = "delay=10us&rate=100Gbit&mtu=4096&buffer=500000";

struct Ends : SimPair {
  explicit Ends(const std::string& name, uint32_t weight = 1)
      : SimPair(name,
                {.network = line,
                 .jetty = {.berths = 64, .weight = weight},
                 .device = {.congestion = "fixed"}},
                {.network = line, .jetty = {.berths = 4}, .device = {.congestion = "fixed"}}) {}
};

Duration percentile(std::vector<Duration> times, double part) {
  const auto at = static_cast<size_t>(static_cast<double>(times.size() - 1) * part);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(at));
  return times[at];
}

std::vector<Duration> small_writes(Ends& ends, Jetty& jetty, size_t count,
                                   const std::function<void()>& meanwhile, Duration rest = 3us) {
  const auto bytes = bytes_like(64);
  std::vector<Duration> times;
  while (times.size() < count) {
    meanwhile();
    const Time begin = ends.hosts.now();
    REQUIRE(jetty.post(write(bytes, ends.target.segment)) == 1);
    std::array<Completion, 1> out;
    while (jetty.poll(out) == 0) {
      ends.hosts.run_for(200ns);
      meanwhile();
    }
    REQUIRE(out[0].ok());
    times.push_back(ends.hosts.now() - begin);
    for (const Time until = ends.hosts.now() + rest; ends.hosts.now() < until; meanwhile()) {
      ends.hosts.run_for(3us);
    }
  }
  return times;
}

// Posts as many works as the Jetty has berths for. Returns the bytes written since the last call.
uint64_t flood(Ends& ends, std::span<const std::byte> large) {
  std::array<Completion, 64> out;
  const size_t ended = ends.here.jetty.poll(out);
  while (ends.here.jetty.post(write(large, ends.target.segment)) == 1) {
  }
  return ended * large.size();
}

TEST_CASE("small writes beside a transfer of 1 GiB take at most twice as long as alone") {
  Ends ends("shares-small");
  Jetty small = ends.here.device.jetty({.berths = 4}).value();
  const Duration alone = percentile(small_writes(ends, small, 1000, [] {}), 0.99);
  const auto large = bytes_like(1 << 20);
  uint64_t bytes = 0;
  const Time begin = ends.hosts.now();
  const Duration beside =
      percentile(small_writes(ends, small, 1000, [&] { bytes += flood(ends, large); }), 0.99);
  const auto seconds = std::chrono::duration<double>(ends.hosts.now() - begin).count();
  CHECK(static_cast<double>(bytes) * 8e-9 / seconds > 95);  // Gbit/s of the transfer meanwhile
  CHECK(beside <= 2 * alone);
  REQUIRE(ends.here.jetty.flush().ok());
}

TEST_CASE(
    "rare small writes take at most twice as long beside a transfer of 16 times their weight") {
  for (const uint32_t weight : sanitized ? std::vector{16u} : std::vector{1u, 16u}) {
    Ends ends("shares-rare" + std::to_string(weight), weight);
    Jetty small = ends.here.device.jetty({.berths = 4}).value();
    const Duration alone = percentile(small_writes(
                                          ends, small, 20, [] {}, 2ms),
                                      0.9);
    const auto large = bytes_like(1 << 20);
    const Duration beside =
        percentile(small_writes(
                       ends, small, 100, [&] { (void)flood(ends, large); }, 2ms),
                   0.98);
    CHECK(beside <= 2 * alone);
    REQUIRE(ends.here.jetty.flush().ok());
  }
}

constexpr Duration while_they_share = sanitized ? 4ms : 20ms;

// Returns the works per second that each of the Jetties completes, with as many outstanding as its
// options allow.
std::vector<double> works_of(Ends& ends, const std::vector<JettyOptions>& options, size_t bytes) {
  const auto data = bytes_like(bytes);
  std::vector<Jetty> jetties;
  for (const JettyOptions& each : options) jetties.push_back(ends.here.device.jetty(each).value());
  std::vector<double> done(jetties.size());
  const Time begin = ends.hosts.now();
  while (ends.hosts.now() < begin + while_they_share) {
    for (size_t i = 0; i < jetties.size(); ++i) {
      std::array<Completion, 64> out;
      done[i] += static_cast<double>(jetties[i].poll(out));
      while (jetties[i].post(write(data, ends.target.segment)) == 1) {
      }
    }
    ends.hosts.run_for(2us);
  }
  return done;
}

// A Jetty with a hundred times as many outstanding works takes no more than one with as many as the
// others.
TEST_CASE("a Jetty that floods leaves the others at least nine tenths of what they had") {
  for (const size_t bytes : {64u, 4096u, 65536u, 1000000u}) {
    const JettyOptions usual{.berths = 40};
    Ends ends("shares-flood" + std::to_string(bytes));
    const auto before = works_of(ends, {usual, usual, usual, usual}, bytes);
    const auto beside = works_of(ends, {{.berths = 4096}, usual, usual, usual}, bytes);
    for (size_t i = 1; i < before.size(); ++i) {
      CHECK(beside[i] >= 0.9 * before[i]);
    }
  }
}

TEST_CASE("Jetties share the channel in proportion to their weights") {
  Ends ends("shares-weights");
  auto got = works_of(
      ends, {{.berths = 64, .weight = 1}, {.berths = 64, .weight = 2}, {.berths = 64, .weight = 4}},
      65536);
  const double all = got[0] + got[1] + got[2];
  for (double& share : got) share /= all;
  CHECK(std::abs(got[0] - 1.0 / 7) < 0.02);
  CHECK(std::abs(got[1] - 2.0 / 7) < 0.02);
  CHECK(std::abs(got[2] - 4.0 / 7) < 0.02);
}

// Returns how long a write of 64 KiB takes beside sixteen Jetties that flood (median).
Duration beside_sixteen(bool urgent) {
  const auto large = bytes_like(1 << 20);
  const auto data = bytes_like(65536);
  Ends ends(urgent ? "shares-urgent" : "shares-usual");
  Jetty small = ends.here.device.jetty({.berths = 4, .urgent = urgent}).value();
  std::vector<Jetty> others;
  for (int i = 0; i < 16; ++i) others.push_back(ends.here.device.jetty({.berths = 16}).value());
  std::array<Completion, 64> out;
  const auto flood_all = [&] {
    for (Jetty& other : others) {
      (void)other.poll(out);
      while (other.post(write(large, ends.target.segment)) == 1) {
      }
    }
  };
  std::vector<Duration> times;
  while (times.size() < 40) {
    flood_all();
    const Time begin = ends.hosts.now();
    REQUIRE(small.post(write(data, ends.target.segment)) == 1);
    while (small.poll(out) == 0) {
      ends.hosts.run_for(1us);
      flood_all();
    }
    REQUIRE(out[0].ok());
    times.push_back(ends.hosts.now() - begin);
  }
  return percentile(times, 0.5);
}

// 84 us is what a MiB takes on the line: a slice of each of the sixteen.
TEST_CASE("an urgent write does not wait for the slices of other Jetties") {
  const Duration usual = beside_sixteen(false);
  const Duration urgent = beside_sixteen(true);
  CAPTURE(usual.count(), urgent.count());
  CHECK(usual - urgent >= 70us);
}

// Two slices of the usual Jetty wait, so each eighth urgent one is followed by one of these.
TEST_CASE("urgent Jetties share by weight, and leave a usual one a ninth") {
  Ends ends("shares-classes");
  auto got = works_of(ends,
                      {{.berths = 64},
                       {.berths = 64, .weight = 1, .urgent = true},
                       {.berths = 64, .weight = 3, .urgent = true}},
                      65536);
  const double all = got[0] + got[1] + got[2];
  for (double& share : got) share /= all;
  CHECK(std::abs(got[0] - 1.0 / 9) < 0.02);
  CHECK(std::abs(got[1] - 8.0 / 9 / 4) < 0.03);
  CHECK(std::abs(got[2] - 8.0 / 9 * 3 / 4) < 0.03);
}

constexpr const char* slow_line = "delay=10us&rate=80Mbit&mtu=4096&buffer=500000";

// 160 slices a second leave. All forty are ahead of a time-out of 1 s.
TEST_CASE("over a slow line the works of many usual Jetties end beside an urgent one that floods") {
  const auto data = bytes_like(65536);
  SimPair ends("shares-slow", {.network = slow_line},
               {.network = slow_line, .jetty = {.berths = 4}});
  Jetty urgent = ends.here.device.jetty({.berths = 64, .urgent = true}).value();
  std::vector<Jetty> usual;
  for (int i = 0; i < 40; ++i) {
    usual.push_back(ends.here.device.jetty({.berths = 2, .operation_timeout = 1s}).value());
  }
  std::vector<uint64_t> ended(usual.size());
  std::array<Completion, 64> out;
  for (const Time begin = ends.hosts.now(); ends.hosts.now() < begin + 4s;) {
    (void)urgent.poll(out);
    while (urgent.post(write(data, ends.target.segment)) == 1) {
    }
    for (size_t i = 0; i < usual.size(); ++i) {
      const size_t count = usual[i].poll(out);
      for (const Completion& one : std::span(out).first(count)) {
        REQUIRE(one.status == Status::ok);
      }
      ended[i] += count;
      while (usual[i].post(write(data, ends.target.segment)) == 1) {
      }
    }
    ends.hosts.run_for(2ms);
  }
  CHECK(std::ranges::min(ended) >= 2);
}

// Slices of a Jetty that is gone are still in the queue of the channel, where they count as what
// they were.
TEST_CASE("a Jetty with the number of one of the other class has a share of its own class") {
  for (const bool urgent : {false, true}) {
    const auto large = bytes_like(1 << 20);
    const std::string name = urgent ? "shares-after-urgent" : "shares-after-usual";
    SimPair ends(name, {.network = slow_line}, {.network = slow_line, .jetty = {.berths = 4}});
    const auto make = [&](bool as) {
      return ends.here.device.jetty({.berths = 16, .urgent = as, .id = JettyId(5)}).value();
    };
    {
      Jetty before = make(urgent);
      while (before.post(write(large, ends.target.segment)) == 1) {
      }
      ends.hosts.run_for(30ms);  // fills the window
      ends.hosts.stop(ends.there);
      REQUIRE(before.flush().ok());
    }
    Jetty after = make(!urgent);
    REQUIRE(after.post(write(large, ends.target.segment)) == 1);
    ends.hosts.run_for(1ms);
    ends.hosts.stop(ends.there, false);
    std::array<Completion, 1> out;
    for (int i = 0; i < 1'000 && after.poll(out) == 0; ++i) ends.hosts.run_for(1ms);
    CHECK(out[0].ok());
  }
}

}  // namespace
}  // namespace urma::test
