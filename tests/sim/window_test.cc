// SPDX-License-Identifier: Apache-2.0
// Peers in one window: rings that are full, and owners that are stopped, silent, replaced or
// killed.

#include <map>
#include <optional>

#include "drivers/cxl/window_lock.h"
#include "tests/catch.h"
#include "tests/drivers/window_file.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t ring_bytes = drivers::cxl::ring_lines * drivers::cxl::line_bytes;

// Hosts that share a window. A killed host ends as a killed process does.
class WindowHosts : public SimHosts {
 public:
  explicit WindowHosts(const std::string& name, uint64_t bytes = 16 << 20)
      : SimHosts(name), file_("sim-" + name), device_("sim(net=" + name + "):" + file_.device("")) {
    file_.write("");
    file_.cut(bytes);
  }
  Host start(const JettyOptions& jetty = {.berths = 64, .receives = 16},
             const DeviceOptions& device = {}) const {
    return start_at(device_, jetty, device);
  }

  const std::string& path() const { return file_.path(); }

 private:
  WindowFile file_;
  std::string device_;
};

using Host = SimHosts::Host;

// Two hosts, and a channel between them.
struct Two {
  std::vector<std::byte> bytes =
      bytes_like(100);  // declared first, so it outlives the works that use it
  WindowHosts hosts;
  Host here;
  Host there;
  Imported target;  // `there`, as imported by `here`

  explicit Two(const std::string& name, const JettyOptions& jetty = {.berths = 64, .receives = 16},
               const DeviceOptions& device = {})
      : hosts(name),
        here(hosts.start(jetty, device)),
        there(hosts.start(jetty, device)),
        target(here.device.import(there.line).value()) {
    REQUIRE(one_write(1s) == Status::ok);
  }
  Status one_write(Duration limit) {
    REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
    return only_status(here.jetty, limit);
  }
  // Sends wrong tokens from another Jetty, until the target ignores requests.
  void guess() {
    Jetty guesses = here.device.jetty({.berths = 32}).value();
    for (uint32_t i = 1; i < 18; ++i) {
      RemoteSegment wrong = target.segment;
      wrong.token = TokenValue(number(wrong.token) + i);
      REQUIRE(guesses.post(write(bytes, wrong)) == 1);
    }
    hosts.run_for(1ms);
  }
};

Statistics statistics_of(Host& host) { return host.device.stats().value(); }

// Returns how often the next `count` works ended with each status.
std::map<Status, size_t> ends(Jetty& jetty, size_t count, Duration limit) {
  std::map<Status, size_t> ended;
  for (size_t got = 0; got < count;) {
    const auto completions = jetty.wait(limit);
    REQUIRE_FALSE(completions.empty());
    got += completions.size();
    for (const Completion& completion : completions) ++ended[completion.status];
  }
  return ended;
}

size_t arrivals(Jetty& jetty, Duration limit) {
  size_t count = 0;
  for (;;) {
    const auto completions = jetty.wait(limit);
    if (completions.empty()) return count;
    for (const Completion& completion : completions) count += completion.ok();
  }
}

// ---- dead peers

TEST_CASE("window: when a peer is killed, works in flight end immediately with the right status") {
  Two two("w-killed", {.berths = 1000});
  const auto bytes = bytes_like(3000);
  // More works than a ring has room for: some have left, others have not.
  const std::vector<Work> works(400, write(bytes, two.target.segment));
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(works) == 400);
  two.hosts.run_for(1ms);
  two.hosts.stop(two.there, false);
  two.hosts.kill(std::move(two.there));
  const Time died = two.hosts.now();
  auto ended = ends(two.here.jetty, 400, 5s);
  CHECK(two.hosts.now() - died <=
        21ms);  // the owner's lock is checked, so no time of silence is needed
  CHECK(ended[Status::unknown] > 0);
  CHECK(ended[Status::peer_restarted] > 0);
  CHECK(ended[Status::unknown] + ended[Status::peer_restarted] == 400);
  CHECK(two.one_write(5s) == Status::peer_restarted);
  CHECK(statistics_of(two.here).channels == 0);
}

TEST_CASE(
    "window: a device that takes the slot of a dead one is a new peer, and served immediately") {
  Two two("w-lives");
  for (unsigned life = 0; life < 20; ++life) {
    const Endpoint place = two.there.device.endpoint();
    two.hosts.kill(std::move(two.there));
    two.there = two.hosts.start();
    REQUIRE(two.there.device.endpoint() == place);
    // The new device asks before the end of the old one was noticed.
    const Imported back = two.there.device.import(two.here.line).value();
    const auto news = bytes_like(2000, life);
    const Time begun = two.hosts.now();
    REQUIRE(status_of(two.there.jetty, write(news, back.segment, 4096 * life), 1s) == Status::ok);
    REQUIRE(two.hosts.now() - begun < 1ms);
    REQUIRE(same(two.here.segment.bytes().subspan(4096 * life, news.size()), news));
    REQUIRE(two.one_write(1s) == Status::peer_restarted);
    two.target = two.here.device.import(two.there.line).value();
    REQUIRE(two.one_write(1s) == Status::ok);
  }
  const Statistics statistics = statistics_of(two.here);
  CHECK(statistics.peers == 2);  // the device itself, and the last one
  CHECK(statistics.channels == 1);
}

TEST_CASE("window: messages that a dead process has written into its ring arrive whole, and once") {
  Two two("w-last-words");
  const Imported back = two.there.device.import(two.here.line).value();
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(two.here.jetty.receive(inbox, tag));
  REQUIRE(two.there.jetty.post(send(two.bytes, back.jetty)) == 1);
  REQUIRE(arrivals(two.here.jetty, 10ms) == 1);
  two.hosts.stop(two.here);
  REQUIRE(two.there.jetty.post(send(two.bytes, back.jetty)) == 1);
  two.hosts.run_for(1ms);
  two.hosts.kill(std::move(two.there));
  two.hosts.stop(two.here, false);
  CHECK(arrivals(two.here.jetty, 100ms) == 1);
  CHECK(same(std::span(inbox).first(two.bytes.size()), two.bytes));
}

// Found by swarm, seed 16334: the survivor was not run while its peer died and restarted. Packets
// for the old incarnation, behind its OPEN, reached the new one and were taken for packets of the
// new channel.
TEST_CASE("window: packets for a dead device do not reach the next one in its slot") {
  WindowHosts hosts("w-next-life");
  Host here = hosts.start({.berths = 64}, {.threads = Threads::inlined});
  Host there = hosts.start();
  const Endpoint place = there.device.endpoint();
  const auto bytes = bytes_like(100);
  const Imported dead = here.device.import(there.line).value();
  REQUIRE(status_of(here.jetty, write(bytes, dead.segment), 1s) == Status::ok);

  const std::vector<Work> works(40, write(bytes, dead.segment));
  std::array<Completion, 1> none;
  REQUIRE(here.jetty.post(works[0]) == 1);
  REQUIRE(here.jetty.poll(none) == 0);
  REQUIRE(here.jetty.post(std::span(works).subspan(1)) == 39);
  hosts.kill(std::move(there));
  there = hosts.start();
  REQUIRE(there.device.endpoint() == place);
  hosts.run_for(1s);
  hosts.network().faults.impairment.delay = 200us;
  const Imported fresh = here.device.import(there.line).value();
  Jetty second = here.device.jetty().value();
  CHECK(status_of(second, write(bytes, fresh.segment), 1s) == Status::ok);
  auto ended = ends(here.jetty, 40, 5s);
  CHECK(ended[Status::unknown] + ended[Status::peer_restarted] == 40);
  CHECK(statistics_of(there).refused == 0);
  CHECK(statistics_of(here).dropped_malformed == 0);
}

TEST_CASE("window: a device that closes notifies its partner, which releases the ring") {
  Two two("w-leaves");
  for (int round = 0; round < 50; ++round) {
    two.there.device.close();
    const Time closed = two.hosts.now();
    REQUIRE(two.one_write(5s) == Status::peer_restarted);
    REQUIRE(two.hosts.now() - closed < 1ms);
    Host gone = std::move(two.there);
    two.there = two.hosts.start();
    two.target = two.here.device.import(two.there.line).value();
    REQUIRE(two.one_write(1s) == Status::ok);
  }
}

// ---- order

// A message that waits for its turn is not confused with the slices behind it.
TEST_CASE("window: strong messages that wait for receives arrive in order") {
  Two two("w-order");
  REQUIRE(status_of(two.here.jetty, write(two.bytes, two.target.segment).relaxed(), 1s) ==
          Status::ok);
  for (uint64_t i = 0; i < 8; ++i) {
    REQUIRE(two.here.jetty.post(send(two.bytes, two.target.jetty).strong().immediate(i)) == 1);
  }
  two.hosts.run_for(5ms);
  CHECK(statistics_of(two.there).parked > 0);
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(two.there.jetty.receive(inbox, tag));
  CHECK(ends(two.here.jetty, 8, 1s)[Status::ok] == 8);
  std::array<Completion, 8> came;
  REQUIRE(two.there.jetty.poll(came) == 8);
  for (uint64_t i = 0; i < 8; ++i) CHECK(came[i].immediate == i);
}

// A target does not report that it has dropped a packet, not even for lack of room.
TEST_CASE("window: one dropped slice stops neither the works behind it nor other works") {
  for (const Order order : {Order::none, Order::strong}) {
    Two two("w-dropped" + std::to_string(static_cast<int>(order)), {.berths = 64},
            {.operation_timeout = 300ms});
    Work work = write(two.bytes, two.target.segment).strong();
    work.order = order;
    REQUIRE(status_of(two.here.jetty, work, 1s) == Status::ok);
    two.guess();
    REQUIRE(two.here.jetty.post(work) == 1);
    std::map<Status, size_t> told;
    size_t posted = 0;
    for (int round = 0; round < 3000; ++round) {
      two.hosts.run_for(1ms);
      // Some works are always outstanding. While they have all 64 berths, none is posted.
      if (round > 100) posted += two.here.jetty.post(work);
      std::array<Completion, 64> out;
      const size_t count = two.here.jetty.poll(out);
      for (const Completion& each : std::span(out).first(count)) ++told[each.status];
    }
    CHECK(posted > 2000);
    CHECK(told[Status::unknown] < 100);
    CHECK(told[Status::ok] > 2000);
  }
}

// ---- peers that do not read

// UB 4.1.2
TEST_CASE("window: works wait for a full ring, works to others do not, and all succeed") {
  Two two("w-full", {.berths = 1000});
  Host other = two.hosts.start();
  const Imported elsewhere = two.here.device.import(other.line).value();
  constexpr size_t each = 8000;
  constexpr size_t count = 4 * ring_bytes / each;
  const auto bytes = bytes_like(each);
  two.hosts.stop(two.there);
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(two.here.jetty.post(write(bytes, two.target.segment, i * 16)) == 1);
  }
  two.hosts.run_for(5ms);
  Jetty second = two.here.device.jetty().value();
  for (int i = 0; i < 10; ++i) {
    const Time begun = two.hosts.now();
    CHECK(status_of(second, write(two.bytes, elsewhere.segment), 1s) == Status::ok);
    CHECK(two.hosts.now() - begun < 200us);
  }
  CHECK(two.here.jetty.wait(100ms).empty());
  two.hosts.stop(two.there, false);
  CHECK(ends(two.here.jetty, count, 1s)[Status::ok] == count);
  CHECK(same(two.there.segment.bytes().subspan((count - 1) * 16, each), bytes));
  CHECK(statistics_of(two.here).channels_lost == 0);
}

TEST_CASE("window: two devices that fill each other's rings with reads both get their data") {
  Two two("w-reads", {.berths = 64});
  const Imported back = two.there.device.import(two.here.line).value();
  std::vector<std::byte> from_there(200'000);
  std::vector<std::byte> from_here(200'000);
  for (int i = 0; i < 32; ++i) {
    REQUIRE(two.here.jetty.post(read(std::span(from_there), two.target.segment)) == 1);
    REQUIRE(two.there.jetty.post(read(std::span(from_here), back.segment)) == 1);
  }
  CHECK(ends(two.here.jetty, 32, 1s)[Status::ok] == 32);
  CHECK(ends(two.there.jetty, 32, 1s)[Status::ok] == 32);
}

// ---- silent peers

TEST_CASE("window: a peer that is stopped for less than 1 s fails no work") {
  Two two("w-short");
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(write(two.bytes, two.target.segment)) == 1);
  two.hosts.run_for(900ms);
  two.hosts.stop(two.there, false);
  CHECK(only_status(two.here.jetty, 1s) == Status::ok);
  for (Host* host : {&two.here, &two.there}) CHECK(statistics_of(*host).channels_lost == 0);
}

TEST_CASE("window: a peer that is stopped for long keeps its channel, and gets each message once") {
  Two two("w-verdict", {.berths = 64, .receives = 16}, {.operation_timeout = 20s});
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(two.there.jetty.receive(inbox, tag));
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(
              {send(two.bytes, two.target.jetty), send(two.bytes, two.target.jetty)}) == 2);
  two.hosts.run_for(1200ms);
  // The peer is silent, so this work is not even put in the ring.
  std::array<Event, 4> events;
  REQUIRE(two.here.device.events(events) == 1);
  CHECK(events[0].kind == EventKind::peer_lost);
  REQUIRE(two.here.jetty.post(send(two.bytes, two.target.jetty)) == 1);
  two.hosts.run_for(100ms);
  two.hosts.stop(two.there, false);
  CHECK(ends(two.here.jetty, 3, 1s)[Status::ok] == 3);
  CHECK(arrivals(two.there.jetty, 100ms) == 3);
  CHECK(statistics_of(two.here).channels_lost == 0);
  CHECK(statistics_of(two.there).repeated == 0);
  two.hosts.run_for(1ms);
  REQUIRE(two.here.device.events(events) == 1);
  CHECK(events[0].kind == EventKind::peer_back);
}

// The only thing that the peer has to do is to take an answer. That ends its silence, although it
// sends nothing.
TEST_CASE("window: a peer that takes an answer late is no longer silent") {
  Two two("w-taken");
  const Imported back = two.there.device.import(two.here.line).value();
  std::vector<std::byte> bytes(1000);
  REQUIRE(two.there.jetty.post(read(std::span(bytes), back.segment)) == 1);
  two.hosts.run_for(1us);
  two.hosts.stop(two.there);
  two.hosts.run_for(1500ms);
  two.hosts.stop(two.there, false);
  CHECK(only_status(two.there.jetty, 5s) == Status::ok);
  two.hosts.run_for(50ms);
  const Time begun = two.hosts.now();
  CHECK(two.one_write(5s) == Status::ok);
  CHECK(two.hosts.now() - begun < 1ms);
}

TEST_CASE(
    "window: works to a stopped peer end in time, and no more are sent than fit in the ring") {
  Two two("w-asked", {.berths = 4000, .receives = 16}, {.operation_timeout = 1500ms});
  two.hosts.stop(two.there);
  std::map<Status, size_t> ended;
  size_t posted = 0;
  const Time begun = two.hosts.now();
  while (two.hosts.now() - begun < 10s) {
    posted += two.here.jetty.post(write(two.bytes, two.target.segment));
    std::array<Completion, 64> out;
    const size_t count = two.here.jetty.poll(out);
    for (size_t i = 0; i < count; ++i) ++ended[out[i].status];
    two.hosts.run_for(1ms);
  }
  REQUIRE(posted > 5000);
  two.hosts.stop(two.there, false);
  size_t left = posted;
  for (const auto& [status, count] : ended) left -= count;
  for (const auto& [status, count] : ends(two.here.jetty, left, 1s)) ended[status] += count;
  // The works that are in the ring, and those of one more second.
  CHECK(ended[Status::unknown] > 0);
  CHECK(ended[Status::unknown] < 1100);
  CHECK(ended[Status::ok] > 1000);
  // A work is flushed if it timed out just when the peer continued.
  ended[Status::peer_unreachable] += ended[Status::flushed];
  CHECK(ended[Status::flushed] <= 64);
  CHECK(ended[Status::ok] + ended[Status::unknown] + ended[Status::peer_unreachable] == posted);
  CHECK(two.one_write(1s) == Status::ok);
}

// Repeated messages about the cancelled slice would fill the ring.
TEST_CASE(
    "window: a cancelled slice is announced to a stopped peer once, and again when it continues") {
  Two two("w-told", {.berths = 64, .receives = 16}, {.operation_timeout = 1500ms});
  two.guess();
  REQUIRE(two.here.jetty.post(write(two.bytes, two.target.segment)) == 1);  // the target drops it
  two.hosts.run_for(50ms);
  const uint64_t filler = statistics_of(two.here).filler;
  two.hosts.stop(two.there);
  two.hosts.run_for(5s);
  CHECK(only_status(two.here.jetty, 1s) == Status::unknown);
  CHECK(statistics_of(two.here).filler < filler + 3);
  two.hosts.stop(two.there, false);
  // Unless the target learns of the cancelled number, the window of numbers ends there.
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(two.one_write(1s) == Status::ok);
  }
  CHECK(statistics_of(two.here).filler < filler + 5);
}

TEST_CASE("window: a sender that waits for room does not poll for it while nothing may leave") {
  Two two("w-paused", {.berths = 1000}, {.operation_timeout = 5s});
  const auto bytes = bytes_like(3000);
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(std::vector<Work>(400, write(bytes, two.target.segment))) == 400);
  two.hosts.run_for(1500ms);
  // Another incarnation is asked for at the address of the stopped one.
  Descriptor other = parse_descriptor(two.there.line).value();
  other.life = Incarnation(number(other.life) + 1);
  Jetty second = two.here.device.jetty().value();
  REQUIRE(second.post(write(bytes, two.here.device.import(to_string(other)).value().segment)) == 1);
  const uint64_t passes = statistics_of(two.here).passes;
  two.hosts.run_for(1s);
  CHECK(statistics_of(two.here).passes < passes + 1000);
  two.hosts.stop(two.there, false);
  CHECK(only_status(second, 10s) == Status::peer_restarted);
  CHECK(ends(two.here.jetty, 400, 10s)[Status::ok] == 400);
}

// A full table of peers keeps no entry for a stopped peer.
TEST_CASE(
    "window: a stopped peer is forgotten in favour of another, and is notified when it continues") {
  WindowHosts hosts("w-doubt");
  const JettyOptions jetty{.berths = 256, .receives = 256};
  Host here = hosts.start(jetty, {.limits = {.peers = 2}});  // the device itself, and one peer
  Host there = hosts.start(jetty);
  const auto bytes = bytes_like(100);
  const Imported seen = there.device.import(here.line).value();
  REQUIRE(status_of(there.jetty, write(bytes, seen.segment), 1s) == Status::ok);
  hosts.stop(there);
  {
    Host next = hosts.start(jetty, {.operation_timeout = 10s});
    CHECK(status_of(next.jetty, write(bytes, next.device.import(here.line).value().segment), 10s) ==
          Status::ok);
    hosts.kill(std::move(next));
  }
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 256; ++tag) REQUIRE(here.jetty.receive(inbox, tag));
  hosts.stop(there, false);
  // Some works are in the ring before the device is notified, and others are held back.
  for (int i = 0; i < 200; ++i) {
    REQUIRE(there.jetty.post(send(bytes, seen.jetty)) == 1);
    hosts.run_for(100ns);
  }
  auto ended = ends(there.jetty, 200, 10s);
  const size_t arrived = arrivals(here.jetty, 100ms);
  CHECK(ended[Status::ok] <= arrived);
  CHECK(arrived <= ended[Status::ok] + ended[Status::unknown]);
  CHECK(status_of(there.jetty, write(bytes, there.device.import(here.line).value().segment), 5s) ==
        Status::ok);
}

TEST_CASE("window: two devices that were both stopped and lost their channel get a new one") {
  Two two("w-both", {.berths = 64, .receives = 16}, {.operation_timeout = 20s});
  const Imported back = two.there.device.import(two.here.line).value();
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(write(two.bytes, two.target.segment)) == 1);
  two.hosts.run_for(1200ms);  // `here` asks for another channel now
  REQUIRE(two.there.jetty.post(write(two.bytes, back.segment)) == 1);
  two.hosts.stop(two.here);
  two.hosts.stop(two.there, false);
  two.hosts.run_for(1200ms);  // and so does `there`
  two.hosts.stop(two.here, false);
  CHECK(only_status(two.here.jetty, 5s) == Status::ok);
  CHECK(only_status(two.there.jetty, 5s) == Status::ok);
  for (Host* host : {&two.here, &two.there}) {
    CHECK(statistics_of(*host).channels == 1);
    CHECK(statistics_of(*host).peers == 2);
  }
}

TEST_CASE("window: a peer is killed while it is stopped and asked for another channel") {
  Two two("w-gone", {.berths = 64, .receives = 16}, {.operation_timeout = 20s});
  two.hosts.stop(two.there);
  REQUIRE(two.here.jetty.post(write(two.bytes, two.target.segment)) == 1);
  two.hosts.run_for(1200ms);
  two.hosts.kill(std::move(two.there));
  const Time died = two.hosts.now();
  CHECK(only_status(two.here.jetty, 30s) == Status::unknown);
  CHECK(two.hosts.now() - died <= 21s);
}

// Three hosts, in a window with two rings.
struct Few {
  WindowHosts hosts;
  Host a = hosts.start();
  Host b = hosts.start();
  Host c = hosts.start();
  std::vector<std::byte> bytes = bytes_like(100);

  explicit Few(const std::string& name) : hosts(name, 1536 << 10) {}
  static Imported seen(Host& from, const Host& to) { return from.device.import(to.line).value(); }
  void post(Host& from, const Imported& to) {
    REQUIRE(from.jetty.post(write(bytes, to.segment)) == 1);
  }
  Status one_write(Host& from, const Imported& to) {
    post(from, to);
    return only_status(from.jetty, 10s);
  }
};

TEST_CASE("window: a pair for which there is no ring waits until a device leaves") {
  Few few("w-few");
  REQUIRE(few.one_write(few.a, Few::seen(few.a, few.b)) == Status::ok);
  const Imported to_c = Few::seen(few.a, few.c);
  CHECK(few.one_write(few.a, to_c) == Status::no_resources);
  few.hosts.run_for(500ms);  // by then that attempt has ended
  few.post(few.a, to_c);
  few.hosts.run_for(500ms);
  few.hosts.kill(std::move(few.b));
  CHECK(only_status(few.a.jetty, 5s) == Status::ok);
}

TEST_CASE("window: a device that has no ring to itself gets one when another device leaves") {
  Few few("w-self");
  REQUIRE(few.one_write(few.a, Few::seen(few.a, few.b)) == Status::ok);
  REQUIRE(few.one_write(few.a, Few::seen(few.a, few.a)) == Status::ok);
  const Imported to_self = Few::seen(few.c, few.c);
  const Time posted = few.hosts.now();
  CHECK(few.one_write(few.c, to_self) == Status::no_resources);
  CHECK(few.hosts.now() - posted <= 2s + 10ms);
  few.hosts.kill(std::move(few.b));
  few.hosts.run_for(500ms);
  CHECK(few.one_write(few.c, to_self) == Status::ok);
}

// A ring that is missing for one peer has no effect on the report about another peer, whose slot
// was taken by a new device.
TEST_CASE("window: a replaced peer is reported as restarted, even if another pair found no ring") {
  Few few("w-replaced");
  const Imported to_b = Few::seen(few.a, few.b);
  REQUIRE(few.one_write(few.a, to_b) == Status::ok);
  REQUIRE(few.one_write(few.a, Few::seen(few.a, few.c)) == Status::no_resources);
  const Endpoint place = few.b.device.endpoint();
  few.hosts.stop(few.b);
  few.post(few.a, to_b);
  few.hosts.run_for(1ms);
  few.hosts.kill(std::move(few.b));
  few.b = few.hosts.start();
  REQUIRE(few.b.device.endpoint() == place);
  CHECK(only_status(few.a.jetty, 5s) == Status::unknown);
  CHECK(few.one_write(few.a, to_b) == Status::peer_restarted);
}

TEST_CASE("window: while the window is locked, works to the device itself wait and do not fail") {
  WindowHosts hosts("w-locked");
  Host here = hosts.start();
  const Imported to_self = here.device.import(here.line).value();
  const auto bytes = bytes_like(100);
  const int file = ::open(hosts.path().c_str(), O_RDWR | O_CLOEXEC);
  std::optional<drivers::cxl::WindowLock> lock(std::in_place, file);
  REQUIRE(lock->held());
  REQUIRE(here.jetty.post(write(bytes, to_self.segment)) == 1);
  CHECK(here.jetty.wait(100ms).empty());
  lock.reset();
  ::close(file);
  CHECK(only_status(here.jetty, 1s) == Status::ok);
}

}  // namespace
}  // namespace urma::test
