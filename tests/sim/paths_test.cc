// R6: one of four paths fails while data flows, wholly or one way, heals, flaps: what is lost is
// the time that it takes to see it, and nothing executes twice.

#include <algorithm>
#include <cstdio>

#include "tests/sim/pair.h"
#include "urma/base/prng.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Host = SimHosts::Host;

constexpr unsigned path_count = 4;

// Two hosts with four paths between them, each of them 1 Gbit/s and 20 us long.
struct FourPaths {
  SimHosts hosts;
  Host here;
  Host there;
  Imported target;
  uint32_t posted = 0;
  uint64_t done = 0;  // bytes

  explicit FourPaths(const std::string& name, Balance balance,
                     const Retransmission& mode = sel_rack)
      : hosts(name),
        here(start(name, balance, mode)),
        there(start(name, balance, mode)),
        target(here.device.import(there.line).value()) {}

  static Host start(const std::string& name, Balance balance, const Retransmission& mode) {
    std::string text = "paths():";
    for (unsigned i = 0; i < path_count; ++i) {
      text += (i > 0 ? "+sim:" : "sim:") + name + "?rate=1Gbit&queue=256K&delay=10us";
    }
    return SimHosts::start_at(
        text, {.berths = 64, .receives = 256},
        {.operation_timeout = 20s, .retransmission = mode, .balance = balance});
  }

  std::vector<Path> paths() { return here.device.paths(target.segment.peer).value(); }
  // Nothing passes, from here to there, back, or both ways.
  void cut(unsigned path, bool severed, bool forth = true, bool back = true) {
    const Path ends = paths().at(path);
    if (forth) hosts.network().cut(ends.from, ends.to, severed);
    if (back) hosts.network().cut(ends.to, ends.from, severed);
  }
  // Writes of 64 KiB, as many as there are berths. Returns Mbit/s.
  double flow(Duration time) {
    static const auto data = some_bytes(64 << 10);
    const Time begin = hosts.now();
    const uint64_t before = done;
    while (hosts.now() < begin + time) {
      RemoteSegment part = target.segment;
      part.address += posted % 16 * data.size();
      part.bytes = data.size();
      while (here.jetty.post(write(data, part)) == 1) ++posted;
      take(here.jetty.wait(100us));
    }
    const double seconds = std::chrono::duration<double>(hosts.now() - begin).count();
    return static_cast<double>(done - before) * 8 / 1e6 / seconds;
  }
  void take(std::span<const Completion> completions) {
    for (const Completion& completion : completions) {
      REQUIRE(completion.status == Status::ok);
      done += 64 << 10;
      --posted;
    }
  }
  void drain() {
    while (posted > 0) take(here.jetty.wait(1s));
  }
};

std::vector<EventKind> kinds_of(Host& host) {
  std::vector<EventKind> kinds;
  std::array<Event, 8> out;
  while (const size_t count = host.device.events(out)) {
    for (size_t i = 0; i < count; ++i) kinds.push_back(out[i].kind);
  }
  return kinds;
}

TEST_CASE("R6: one of four paths fails, both ways or one, and heals; the others carry on") {
  const struct { bool forth, back; } ways[] = {{true, true}, {true, false}, {false, true}};
  for (const Balance balance : {Balance::slice, Balance::packet}) {
    for (const auto way : ways) {
      INFO((balance == Balance::packet ? "packets" : "slices")
           << ", forth " << way.forth << ", back " << way.back);
      FourPaths four("r6-" + std::to_string(static_cast<int>(balance)) +
                         std::to_string(way.forth * 2 + way.back),
                     balance);
      four.flow(20ms);
      for (const Path& path : four.paths()) CHECK(path.usable);
      const double all = four.flow(50ms);
      four.cut(2, true, way.forth, way.back);
      four.flow(10ms);
      const double without = four.flow(50ms);
      four.cut(2, false, way.forth, way.back);
      four.flow(100ms);
      const double healed = four.flow(50ms);
      std::printf("R6 %s, %s%s: %.0f Mbit/s over four paths, %.0f without one, %.0f healed\n",
                  balance == Balance::packet ? "packets" : "slices", way.forth ? "forth " : "",
                  way.back ? "back" : "", all, without, healed);
      CHECK(all > 3200);
      CHECK(without > 0.9 * 0.75 * all);
      CHECK(healed > 0.95 * all);
      four.drain();
      CHECK(four.here.device.stats().value().channels_lost == 0);
      if (way.forth) {
        CHECK(four.here.device.stats().value().paths_lost >= 1);
        CHECK(four.here.device.stats().value().paths_back >= 1);
        const auto kinds = kinds_of(four.here);
        REQUIRE(kinds.size() >= 2);
        CHECK(kinds[0] == EventKind::path_lost);
        CHECK(kinds.back() == EventKind::path_back);
      }
      const Path mended = four.paths().at(2);
      CHECK(mended.usable);
      CHECK(mended.sent > 0);
    }
  }
}

TEST_CASE("R6: a path that comes and goes ten times a second costs no more than itself") {
  FourPaths four("r6-flap", Balance::packet);
  const double all = four.flow(100ms);
  double least = all;
  for (int i = 0; i < 20; ++i) {
    four.cut(1, i % 2 == 0);
    least = std::min(least, four.flow(50ms));
  }
  CHECK(least > 0.9 * 0.75 * all);
  four.drain();
  CHECK(four.here.device.stats().value().channels_lost == 0);
}

Work told(const FourPaths& four, uint64_t number) {
  static const auto data = some_bytes(20'000);
  return write(data, four.target.segment).to(four.target.jetty).immediate(number);
}

void count_arrivals(FourPaths& four, std::vector<uint64_t>& seen) {
  std::array<Completion, 64> out;
  while (const size_t count = four.there.jetty.poll(out)) {
    for (size_t i = 0; i < count; ++i) ++seen[out[i].immediate];
  }
}

// Every message arrives once, whatever was lost with its path: also what had been executed, and
// whose answer was under way.
TEST_CASE("R6: messages over paths that fail in turn execute once each") {
  FourPaths four("r6-once", Balance::packet);
  four.flow(1ms);
  four.drain();
  Prng chance(7);
  std::vector<uint64_t> seen(3000);
  uint64_t sent = 0;
  uint64_t ended = 0;
  std::array<bool, path_count> severed{};
  while (ended < seen.size()) {
    const auto path = static_cast<unsigned>(chance.below(path_count));
    severed[path] = !severed[path];
    // One stays, so that nothing has to end as unknown.
    if (std::count(severed.begin(), severed.end(), true) == path_count) severed[path] = false;
    four.cut(path, severed[path], chance.below(2) == 0 || !severed[path], true);
    for (int i = 0; i < 100 && ended < seen.size(); ++i) {
      while (sent < seen.size() && four.here.jetty.post(told(four, sent)) == 1) ++sent;
      for (const Completion& done : four.here.jetty.wait(1ms)) {
        REQUIRE(done.status == Status::ok);
        ++ended;
      }
      count_arrivals(four, seen);
    }
  }
  four.hosts.run_for(10ms);
  count_arrivals(four, seen);
  CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<ptrdiff_t>(seen.size()));
  CHECK(four.here.device.stats().value().channels_lost == 0);
}

TEST_CASE("a peer all of whose paths were lost is found again over any of them") {
  FourPaths four("paths-all", Balance::slice);
  four.flow(5ms);
  four.drain();
  for (unsigned i = 0; i < path_count; ++i) four.cut(i, true);
  const auto bytes = some_bytes(1000);
  REQUIRE(four.here.jetty.post(write(bytes, four.target.segment)) == 1);
  four.hosts.run_for(1500ms);
  CHECK(four.here.device.stats().value().channels_lost == 1);
  four.cut(3, false);
  CHECK(only_status(four.here.jetty, 5s) == Status::ok);
  CHECK(same(bytes, std::span(four.there.memory).first(bytes.size())));
  const auto paths = four.paths();
  CHECK(paths[3].usable);
  CHECK_FALSE(paths[0].usable);
}

TEST_CASE("a device with one path and one with three reach each other over three") {
  SimHosts hosts("paths-one");
  Host one = hosts.start();
  Host three =
      SimHosts::start_at("paths():sim:paths-one+sim:paths-one+sim:paths-one", {.berths = 64}, {});
  const Imported there = one.device.import(three.line).value();
  const Imported back = three.device.import(one.line).value();
  const auto bytes = some_bytes(300'000);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(one.jetty.post(write(bytes, there.segment)) == 1);
    REQUIRE(only_status(one.jetty, 1s) == Status::ok);
    REQUIRE(three.jetty.post(write(bytes, back.segment)) == 1);
    REQUIRE(only_status(three.jetty, 1s) == Status::ok);
  }
  CHECK(same(bytes, std::span(three.memory).first(bytes.size())));
  for (const auto& [device, peer] :
       {std::pair(&one.device, there.segment.peer), std::pair(&three.device, back.segment.peer)}) {
    const auto paths = device->paths(peer).value();
    REQUIRE(paths.size() == 3);
    for (const Path& path : paths) {
      CHECK(path.usable);
      CHECK(path.sent > 0);
    }
  }
  CHECK(one.device.paths(PeerId{}).status() == Status::invalid_argument);
}

}  // namespace
}  // namespace urma::test
