// SPDX-License-Identifier: Apache-2.0
// R6: one of four paths fails while data flows, in both directions or one, heals, or flaps. The
// failure costs only the time to detect it, and nothing executes twice.

#include <algorithm>
#include <cstdio>

#include "base/prng.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Host = SimHosts::Host;

constexpr unsigned path_count = 4;

// Two hosts with four paths between them, each of them 1 Gbit/s and 20 us long.
struct FourPaths : SimPair {
  uint32_t posted = 0;
  uint64_t done = 0;  // bytes

  explicit FourPaths(const std::string& name, Balance balance,
                     const Retransmission& mode = sel_rack, const std::string& last = usual)
      : SimPair(name, options(name, balance, mode, last), options(name, balance, mode, last)) {}

  static constexpr const char* usual = "rate=1Gbit&queue=256K&delay=10us";

  static HostOptions options(const std::string& name, Balance balance, const Retransmission& mode,
                             const std::string& last) {
    std::string text = "paths():";
    for (unsigned i = 0; i < path_count; ++i) {
      text += (i > 0 ? "+sim:" : "sim:") + name + "?" + (i + 1 == path_count ? last : usual);
    }
    return {.text = text,
            .jetty = {.berths = 64, .receives = 256},
            .device = {.operation_timeout = 20s, .retransmission = mode, .balance = balance}};
  }

  // Returns this device as the other one imports it.
  PeerId back() { return there.device.import(here.line).value().segment.peer; }
  std::vector<Path> paths() { return here.device.paths(target.segment.peer).value(); }
  // Drops all packets on a path, from here to there, back, or both ways.
  void cut(unsigned path, bool severed, bool forth = true, bool back = true) {
    const Path ends = paths().at(path);
    if (forth) hosts.network().faults.cut(ends.from, ends.to, severed);
    if (back) hosts.network().faults.cut(ends.to, ends.from, severed);
  }
  // Keeps as many writes of 64 KiB outstanding as there are berths. Returns Mbit/s.
  double flow(Duration time) {
    static const auto data = bytes_like(64 << 10);
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

TEST_CASE("R6: one of four paths fails in one or both directions and heals; the others carry on",
          "[rates]") {
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

// A worse path reduces only its own share of the traffic.
TEST_CASE("a path that is slow, far or lossy does not hold the others back", "[rates]") {
  const struct {
    const char* what;
    const char* path;
    double share;  // in units of 1 Gbit/s, at least
  } kinds[] = {{"as the others", FourPaths::usual, 0.95},
               {"a tenth of the rate", "rate=100Mbit&queue=256K&delay=10us", 0.09},
               {"a tenth of the rate, a small queue", "rate=100Mbit&queue=64K&delay=10us", 0.09},
               {"ten times the delay", "rate=1Gbit&queue=256K&delay=100us", 0.95},
               {"a hundred times the delay", "rate=1Gbit&queue=256K&delay=1ms", 0.95},
               {"loses 1 %", "rate=1Gbit&queue=256K&delay=10us&loss=1%", 0.95},
               {"loses 5 %", "rate=1Gbit&queue=256K&delay=10us&loss=5%", 0.9}};
  int number = 0;
  for (const Balance balance : {Balance::slice, Balance::packet}) {
    for (const auto& kind : kinds) {
      INFO((balance == Balance::packet ? "packets, " : "slices, ") << kind.what);
      FourPaths four("unlike-" + std::to_string(++number), balance, sel_rack, kind.path);
      four.flow(100ms);
      const double all = four.flow(200ms);
      const auto paths = four.paths();
      uint64_t sent = 0;
      for (const Path& path : paths) sent += path.sent;
      std::printf("%s, one %s: %.0f Mbit/s, %.1f %% of them over it\n",
                  balance == Balance::packet ? "packets" : "slices", kind.what, all,
                  100.0 * static_cast<double>(paths[3].sent) / static_cast<double>(sent));
      CHECK(all > 0.95 * (3 + kind.share) * 980);
      // Few packets wait in the queue of that path.
      CHECK(paths[3].rtt < 6ms);
      four.drain();
      CHECK(four.here.device.stats().value().channels_lost == 0);
    }
  }
}

TEST_CASE("R6: a path that fails and heals ten times a second costs no more than its own share",
          "[rates]") {
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

// Numbered messages over four paths. Each must end as ok, and arrive once.
class NumberedMessages {
 public:
  NumberedMessages(FourPaths& four, size_t count) : four_(four), arrivals_(count) {}

  bool ended() const { return ended_ == arrivals_.size(); }
  // Posts as many as there are berths, and counts for `turns` milliseconds what ends and arrives.
  void run(int turns) {
    for (int i = 0; i < turns && !ended(); ++i) {
      while (sent_ < arrivals_.size() && four_.here.jetty.post(message(sent_)) == 1) ++sent_;
      for (const Completion& done : four_.here.jetty.wait(1ms)) {
        REQUIRE(done.status == Status::ok);
        ++ended_;
      }
      count_arrivals();
    }
  }
  bool arrived_once_each() {
    four_.hosts.run_for(10ms);
    count_arrivals();
    return std::ranges::count(arrivals_, 1) == static_cast<ptrdiff_t>(arrivals_.size());
  }

 private:
  Work message(uint64_t number) const {
    return write(data_, four_.target.segment).to(four_.target.jetty).immediate(number);
  }
  void count_arrivals() {
    std::array<Completion, 64> out;
    while (const size_t count = four_.there.jetty.poll(out)) {
      for (size_t i = 0; i < count; ++i) ++arrivals_[out[i].immediate];
    }
  }

  const std::vector<std::byte> data_ = bytes_like(20'000);
  FourPaths& four_;
  std::vector<uint64_t> arrivals_;
  uint64_t sent_ = 0;
  uint64_t ended_ = 0;
};

// Each message arrives once, whatever was lost with its path, even if it had been executed and only
// the answer was lost.
TEST_CASE("R6: messages over paths that fail in turn execute once each") {
  FourPaths four("r6-once", Balance::packet);
  four.flow(1ms);
  four.drain();
  Prng chance(7);
  NumberedMessages messages(four, 3000);
  std::array<bool, path_count> severed{};
  while (!messages.ended()) {
    const auto path = static_cast<unsigned>(chance.below(path_count));
    severed[path] = !severed[path];
    // One path stays, so that no work has to end as unknown.
    if (std::count(severed.begin(), severed.end(), true) == path_count) severed[path] = false;
    four.cut(path, severed[path], chance.below(2) == 0 || !severed[path], true);
    messages.run(100);
  }
  CHECK(messages.arrived_once_each());
  CHECK(four.here.device.stats().value().channels_lost == 0);
}

TEST_CASE("a peer is found again over any path after all its paths were lost") {
  FourPaths four("paths-all", Balance::slice);
  four.flow(5ms);
  four.drain();
  for (unsigned i = 0; i < path_count; ++i) four.cut(i, true);
  const auto bytes = bytes_like(1000);
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

// In these modes a packet that is overtaken counts as lost, so they use one path at a time, and
// change to the next one when it fails. They return when it works again, and no packet is overtaken
// then.
TEST_CASE("go-back-N and fast use one path at a time, and fail over") {
  for (const Retransmission& mode : {gbn_fast, gbn_timeout, sel_fast}) {
    for (const Balance balance : {Balance::slice, Balance::packet}) {
      INFO(name(mode) << (balance == Balance::packet ? ", packets" : ", slices"));
      FourPaths four("one-" + std::string(name(mode)) + std::to_string(static_cast<int>(balance)),
                     balance, mode);
      four.flow(20ms);
      const double one = four.flow(50ms);
      CHECK(one > 750);
      CHECK(four.paths()[0].sent > 1000);
      for (unsigned i = 1; i < path_count; ++i) CHECK(four.paths()[i].sent < 100);

      four.cut(0, true);
      const Time cut_at = four.hosts.now();
      const uint64_t before = four.done;
      while (four.done == before || !four.paths()[1].sent) four.flow(1ms);
      const Duration gap = four.hosts.now() - cut_at;
      four.flow(30ms);
      const double other = four.flow(50ms);
      CHECK(other > 0.9 * one);
      CHECK(four.paths()[1].sent > 1000);
      CHECK(four.paths()[2].sent < 100);

      // A full queue costs packets on one path, too. Changing the path does not cost more.
      const auto again = [&] { return four.here.device.stats().value().retransmitted; };
      const uint64_t begun = again();
      four.flow(150ms);
      const uint64_t usual = again() - begun;
      four.cut(0, false);
      four.flow(100ms);
      const uint64_t sent = four.paths()[0].sent;
      const double back = four.flow(50ms);
      CHECK(back > 0.9 * one);
      CHECK(four.paths()[0].sent > sent + 1000);
      CHECK(again() - begun - usual <= usual + usual / 4 + 16);
      CHECK(four.here.device.stats().value().channels_lost == 0);
      four.drain();
      std::printf("R6 %s: %.0f Mbit/s over one path, %.0f over the next %lld us later, %.0f back\n",
                  std::string(name(mode)).c_str(), one, other,
                  static_cast<long long>(gap.count() / 1000), back);
      CHECK(gap < 50ms);
    }
  }
}

// The first path, which descriptors name, is dead when a peer restarts. The next incarnation is
// found over another path, and finds others over it.
TEST_CASE("a peer that restarts while its first path is dead is found over another one") {
  for (const bool asked_by_us : {true, false}) {
    INFO((asked_by_us ? "the survivor asks" : "the restarted peer asks"));
    const std::string net = asked_by_us ? "paths-restart" : "paths-restarted";
    SimHosts hosts(net);
    const auto text = [&](int first) {
      std::string out = "paths():";
      for (int i = 0; i < 3; ++i) {
        out += (i > 0 ? "+sim:" : "sim:") + net + "?address=fd00::" + std::to_string(first + i);
      }
      return out;
    };
    Host here = SimHosts::start_at(text(10), {.berths = 64}, {});
    Host there = SimHosts::start_at(text(20), {.berths = 64}, {});
    const auto bytes = bytes_like(20'000);
    const Imported old = here.device.import(there.line).value();
    REQUIRE(status_of(here.jetty, write(bytes, old.segment), 1s) == Status::ok);
    const Path first = here.device.paths(old.segment.peer).value()[0];
    const Eid eid = there.device.eid();
    for (const auto& [from, to] : {std::pair(first.from, first.to), {first.to, first.from}}) {
      hosts.network().faults.cut(from, to, true);
    }
    hosts.kill(std::move(there));
    there = SimHosts::start_at(text(20), {.berths = 64}, {});
    CHECK(there.device.eid() == eid);
    Host& asker = asked_by_us ? here : there;
    Host& asked = asked_by_us ? there : here;
    const Imported target = asker.device.import(asked.line).value();
    const Time begun = hosts.now();
    CHECK(status_of(asker.jetty, write(bytes, target.segment), 5s) == Status::ok);
    CHECK(hosts.now() - begun < 50ms);
    CHECK(same(bytes, std::span(asked.memory).first(bytes.size())));
    if (!asked_by_us) continue;
    CHECK(status_of(here.jetty, write(bytes, old.segment), 5s) == Status::peer_restarted);
  }
}

std::string another_port(const std::string& name) {
  return "sim:" + name + "?rate=1Gbit&queue=256K&delay=10us";
}

size_t count_of(std::span<const EventKind> kinds, EventKind kind) {
  return static_cast<size_t>(std::count(kinds.begin(), kinds.end(), kind));
}

// Each end gets a fifth port while data flows, and closes one of its first four: the one that
// descriptors name.
TEST_CASE("no work is affected when paths are added and removed while data flows") {
  for (const Balance balance : {Balance::slice, Balance::packet}) {
    INFO((balance == Balance::packet ? "packets" : "slices"));
    const std::string name = "add-" + std::to_string(static_cast<int>(balance));
    FourPaths four(name, balance);
    four.flow(20ms);
    const double all = four.flow(50ms);
    const auto counters = [&] { return four.here.device.stats().value(); };
    const Eid eid = four.here.device.eid();

    const Endpoint ours = four.here.device.add_path(another_port(name)).value();
    const Endpoint theirs = four.there.device.add_path(another_port(name)).value();
    CHECK(four.here.device.endpoints().back() == ours);
    four.flow(10ms);
    const double five = four.flow(50ms);
    CHECK(five > all + 900);
    REQUIRE(four.paths().size() == 5);
    CHECK(four.paths()[4].from == ours);
    CHECK(four.paths()[4].to == theirs);
    CHECK(count_of(kinds_of(four.here), EventKind::path_added) >= 1);
    CHECK(count_of(kinds_of(four.there), EventKind::path_added) >= 1);

    const uint64_t before = counters().retransmitted;
    const Time begun = four.hosts.now();
    REQUIRE(four.here.device.remove_path(four.here.device.endpoint()).ok());
    CHECK(four.hosts.now() - begun < 5ms);
    CHECK(counters().retransmitted - before < 64);
    four.flow(10ms);
    const double back = four.flow(50ms);
    CHECK(back > 0.97 * all);
    CHECK(four.paths().size() == 4);
    CHECK(four.paths()[0].number == 1);
    for (Host* host : {&four.here, &four.there}) {
      const auto kinds = kinds_of(*host);
      CHECK(count_of(kinds, EventKind::path_removed) == 1);
      CHECK(count_of(kinds, EventKind::path_lost) == 0);
    }
    CHECK(four.here.device.eid() == eid);
    std::printf(
        "paths added and removed, %s: %.0f Mbit/s over four, %.0f over five, %.0f over "
        "the other four\n",
        balance == Balance::packet ? "packets" : "slices", all, five, back);

    // Its number is free for another port at another address.
    REQUIRE(four.here.device.add_path(another_port(name)).ok());
    four.flow(10ms);
    CHECK(four.flow(50ms) > all + 900);
    four.drain();
    CHECK(counters().channels_lost == 0);
    CHECK(counters().channels_made == 1);
    CHECK(four.there.device.stats().value().channels_made == 1);
  }
}

// Both ends add and remove paths at random, and packets are lost, also those that announce the
// changes.
TEST_CASE("messages execute once each over paths that are added and removed") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const std::string name = "moving-" + std::to_string(seed);
    FourPaths four(name, seed % 2 == 0 ? Balance::packet : Balance::slice);
    four.flow(1ms);
    four.drain();
    four.hosts.network().faults.impairment.loss = 0.02;
    Prng chance(seed);
    NumberedMessages messages(four, 2000);
    while (!messages.ended()) {
      Host& host = chance.below(2) == 0 ? four.here : four.there;
      const auto places = host.device.endpoints();
      if (chance.below(2) == 0 && places.size() > 1) {
        const auto which = static_cast<size_t>(chance.below(static_cast<uint32_t>(places.size())));
        REQUIRE(host.device.remove_path(places[which]).ok());
      } else if (places.size() < most_paths) {
        REQUIRE(host.device.add_path(another_port(name)).ok());
      }
      messages.run(20);
    }
    CHECK(messages.arrived_once_each());
    CHECK(four.here.device.stats().value().channels_lost == 0);
    CHECK(four.here.device.stats().value().channels_made == 1);
  }
}

// A device repeats an announcement until it is acknowledged. A peer that was away is informed when
// it sends again.
TEST_CASE("a peer that was unreachable when a path was added learns of it later") {
  FourPaths four("told-late", Balance::slice);
  four.flow(5ms);
  four.drain();
  for (unsigned i = 0; i < path_count; ++i) four.cut(i, true);
  const auto old = four.here.device.endpoints();
  REQUIRE(four.here.device.add_path(another_port("told-late")).ok());
  const Time begun = four.hosts.now();
  REQUIRE(four.here.device.remove_path(old[0]).ok());
  CHECK(four.hosts.now() - begun < 60ms);
  four.hosts.run_for(300ms);
  for (unsigned i = 1; i < path_count; ++i) {
    four.hosts.network().faults.cut(old[i], four.there.device.endpoints()[i], false);
    four.hosts.network().faults.cut(four.there.device.endpoints()[i], old[i], false);
  }
  four.flow(50ms);
  four.drain();
  CHECK(four.here.device.stats().value().channels_made == 1);
  const auto there = four.there.device.paths(four.back()).value();
  REQUIRE(there.size() == 4);
  for (const Path& path : there) CHECK_FALSE(path.to == old[0]);
}

// The peer has one port. The device had two ports and has only the second one now.
TEST_CASE("the first path may be removed, down to one, and further ones added") {
  SimHosts hosts("few-paths");
  Host one = hosts.start();
  Host two = SimHosts::start_at("paths():sim:few-paths+sim:few-paths", {.berths = 64}, {});
  const Imported there = one.device.import(two.line).value();
  const auto bytes = bytes_like(100'000);
  const auto passes = [&] {
    CHECK(status_of(one.jetty, write(bytes, there.segment), 5s) == Status::ok);
    // Works to the device itself succeed, too.
    RemoteSegment own = two.device.import(two.line).value().segment;
    CHECK(status_of(two.jetty, write(bytes, own), 5s) == Status::ok);
  };
  passes();
  const auto places = two.device.endpoints();
  REQUIRE(two.device.remove_path(places[0]).ok());
  passes();
  CHECK(one.device.paths(there.segment.peer).value().size() == 1);
  const auto last = two.device.remove_path(places[1]);
  CHECK(last.status() == Status::invalid_argument);
  CHECK(last.error().message.find("Fix: add another path") != std::string::npos);
  CHECK(two.device.remove_path(places[0]).status() == Status::invalid_argument);
  // A new peer learns only the present paths.
  Host late = hosts.start();
  const std::string line = two.segment.descriptor();
  CHECK(status_of(late.jetty, write(bytes, late.device.import(line).value().segment), 5s) ==
        Status::ok);
  for (int i = 1; i < 8; ++i) REQUIRE(two.device.add_path("sim:few-paths").ok());
  CHECK(two.device.add_path("sim:few-paths").status() == Status::no_resources);
  hosts.run_for(20ms);
  passes();
  CHECK(one.device.paths(there.segment.peer).value().size() == 8);
  CHECK(one.device.add_path("sim:few-paths").status() == Status::unsupported);
  for (const char* wrong : {"nonsense", "sim:elsewhere", "sim:few-paths?mtu=1024",
                            "paths():sim:few-paths+sim:few-paths"}) {
    INFO(wrong);
    const auto refused = two.device.add_path(wrong);
    CHECK_FALSE(refused.ok());
    CHECK(refused.error().message.find("Fix: ") != std::string::npos);
  }
}

// Each packet of an answer from guarded memory is a copy until its frame has settled. The four
// ports together hold more frames than there are buffers for copies.
TEST_CASE("guarded memory is read over ports that hold more frames than there are copy buffers") {
  SimHosts hosts("guarded-paths");
  std::string text = "paths():";
  for (const char* more : {"", "+", "+", "+"}) {
    text += std::string(more) + "sim:guarded-paths?hold=3ms&mtu=1K";
  }
  Host there = SimHosts::start_at(text, {.berths = 64}, {});
  auto kept = bytes_like(64 << 10);
  Segment guarded =
      there.device.register_memory(kept, {.rights = Rights::read, .guarded = true}).value();
  struct Reader {
    std::vector<std::byte> bytes;
    Host host;
    RemoteSegment source;
  };
  std::vector<Reader> readers;
  for (int i = 0; i < 3; ++i) {
    Host host = SimHosts::start_at(text, {.berths = 64}, {});
    const RemoteSegment source = host.device.import(guarded.descriptor()).value().segment;
    readers.push_back({std::vector<std::byte>(kept.size()), std::move(host), source});
  }
  for (size_t ended = 0; ended < 3000;) {
    for (Reader& reader : readers) {
      while (reader.host.jetty.post(read(reader.bytes, reader.source)) == 1) {
      }
      for (const Completion& completion : reader.host.jetty.wait(100us)) {
        REQUIRE(completion.status == Status::ok);
        ++ended;
      }
    }
  }
  for (const Reader& reader : readers) CHECK(same(kept, reader.bytes));
}

TEST_CASE("a device with one path and a device with three reach each other over three") {
  SimHosts hosts("paths-one");
  Host one = hosts.start();
  Host three =
      SimHosts::start_at("paths():sim:paths-one+sim:paths-one+sim:paths-one", {.berths = 64}, {});
  const Imported there = one.device.import(three.line).value();
  const Imported back = three.device.import(one.line).value();
  const auto bytes = bytes_like(300'000);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(status_of(one.jetty, write(bytes, there.segment), 1s) == Status::ok);
    REQUIRE(status_of(three.jetty, write(bytes, back.segment), 1s) == Status::ok);
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

// More questions are due at the same time than there is room for. They are sent a little later, and
// a question that was not sent is not counted as unanswered.
struct ManyPeers {
  SimHosts hosts;
  std::string name;
  Host here;
  std::vector<Host> others;

  ManyPeers(std::string net, unsigned paths, unsigned count)
      : hosts(net), name(std::move(net)), here(start(paths, 1024)) {
    for (unsigned i = 0; i < count; ++i) others.push_back(start(paths, 4));
  }
  Host start(unsigned paths, uint32_t berths) const {
    std::string text = "paths():sim:" + name;
    for (unsigned i = 1; i < paths; ++i) text += "+sim:" + name;
    return SimHosts::start_at(text, {.berths = berths}, {.operation_timeout = 20s});
  }
};

TEST_CASE("a device that was stopped for a while loses none of the paths of its 80 peers") {
  ManyPeers many("paths-many", 4, 80);
  std::vector<RemoteSegment> targets;
  for (const Host& other : many.others) {
    targets.push_back(many.here.device.import(other.line).value().segment);
  }
  const auto bytes = bytes_like(16'000);
  const auto write_to_all = [&] {
    size_t posted = 0;
    for (const RemoteSegment& target : targets)
      posted += many.here.jetty.post(write(bytes, target));
    REQUIRE(posted == targets.size());
    while (posted > 0) {
      for (const Completion& one : many.here.jetty.wait(1s)) {
        REQUIRE(one.status == Status::ok);
        --posted;
      }
    }
  };
  for (int pause = 0; pause < 5; ++pause) {
    for (int i = 0; i < 30; ++i) {
      write_to_all();
      many.hosts.run_for(2ms);
    }
    many.hosts.stop(many.here);
    many.hosts.run_for(120ms);
    many.hosts.stop(many.here, false);
  }
  write_to_all();
  many.hosts.run_for(100ms);
  CHECK(many.here.device.stats().value().paths_lost == 0);
  for (Host& other : many.others) CHECK(other.device.stats().value().paths_lost == 0);
}

TEST_CASE("300 idle peers are notified of a moved path in less than 1 ms") {
  ManyPeers many("paths-told", 2, 300);
  const auto bytes = bytes_like(2000);
  std::vector<Imported> back;
  for (Host& other : many.others) {
    back.push_back(other.device.import(many.here.line).value());
    REQUIRE(status_of(other.jetty, write(bytes, back.back().segment), 1s) == Status::ok);
  }
  many.hosts.run_for(5s);
  const auto old = many.here.device.endpoints();
  for (const Endpoint& place : old) {
    REQUIRE(many.here.device.add_path("sim:paths-told").ok());
    const Time begun = many.hosts.now();
    REQUIRE(many.here.device.remove_path(place).ok());
    CHECK(many.hosts.now() - begun < 1ms);
  }
  for (size_t i = 0; i < back.size(); ++i) {
    const auto paths = many.others[i].device.paths(back[i].segment.peer).value();
    for (const Path& path : paths) {
      CHECK(std::find(old.begin(), old.end(), path.to) == old.end());
    }
  }
}

}  // namespace
}  // namespace urma::test
