// SPDX-License-Identifier: Apache-2.0
// Works are executed in the order that the application asks for (docs/reliability.md). The network
// loses and reorders packets, channels die, peers restart, and works fail or are cancelled. With
// URMA_LONG, a thousand worlds.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/fresh_seed.h"
#include "tests/long_run.h"
#include "tests/sanitized.h"
#include "tests/sim/history.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t peers = 2;
constexpr size_t large_bytes = 150'000;  // three slices

// The kinds of trouble that a world may have besides lost packets.
struct Trouble {
  bool cuts = false;      // the network is cut for longer than a silent channel lives: 2 s
  bool restarts = false;  // peers restart at the same address
  bool cancels = false;   // works are cancelled, because their memory is unregistered
};

// One Jetty here, and hosts whose memory has a sum and a cell for each work.
struct World {
  struct Peer {
    SimHosts::Host host;
    Imported target;
    std::vector<std::byte> sum_memory = std::vector<std::byte>(64);
    std::optional<Segment> sum{};
    RemoteSegment sum_there{};
    std::vector<std::byte> others_memory = std::vector<std::byte>(64);
    std::optional<Segment> others{};  // a segment that must not be written
    RemoteSegment others_there{};
    uint32_t life = 0;
    uint64_t arrivals = 0;
  };

  Prng prng;
  History history;
  SimHosts hosts;
  std::string wire;
  SimHosts::Host here;
  std::vector<std::unique_ptr<Peer>> there;
  std::vector<std::byte> large = bytes_like(large_bytes);
  const std::vector<std::byte> last_word = bytes_like(8);
  std::vector<uint64_t> numbers;
  std::vector<uint64_t> fetched;
  uint64_t completions = 0;
  uint64_t rounds = 0;
  std::string wrong_sum;
  std::vector<size_t> unseen;  // writes whose values have not yet been found in memory

  World(uint64_t seed, size_t works, const JettyOptions& jetty)
      : prng(seed),
        hosts("order" + std::to_string(seed), seed),
        wire(random_wire()),
        here(hosts.start(wire, jetty, {.operation_timeout = 30s})),
        numbers(works),
        fetched(works) {
    history.chain = jetty.chain;
    history.in_order = jetty.in_order;
    for (uint32_t peer = 0; peer < peers; ++peer) there.push_back(start(wire));
    for (size_t i = 0; i < works; ++i) history.works.push_back(random_work(i, works));
  }

  std::unique_ptr<Peer> start(const std::string& options) {
    const auto receives = static_cast<uint32_t>(prng.below(2) == 0 ? 4 : 64);
    auto made = std::make_unique<Peer>(
        Peer{.host = hosts.start(options, {.berths = 4, .receives = receives}), .target = {}});
    made->target = here.device.import(made->host.line).value();
    made->sum =
        made->host.device.register_memory(made->sum_memory, {.rights = Rights::atomic}).value();
    made->sum_there = here.device.import(made->sum->descriptor()).value().segment;
    made->others =
        made->host.device.register_memory(made->others_memory, {.rights = Rights::read}).value();
    made->others_there = here.device.import(made->others->descriptor()).value().segment;
    made->others_there.rights = Rights::read | Rights::write;
    for (uint64_t tag = 0; tag < receives; ++tag) receive(made->host, tag);
    return made;
  }
  uint32_t name_of(uint32_t peer) const { return peer + peers * there[peer]->life; }

  std::string random_wire() {
    constexpr std::array losses = {"0", "0.1%", "1%", "5%"};
    return std::string("delay=20us&loss=") + losses[prng.below(losses.size())] +
           (prng.below(2) == 0 ? "&reorder=5%" : "");
  }
  static void receive(SimHosts::Host& host, uint64_t tag) {
    REQUIRE(host.jetty.receive(host.segment.bytes().subspan((1 << 20) - 64, 64), tag));
  }

  History::Work random_work(size_t at, size_t works) {
    using Kind = History::Kind;
    History::Work work{.kind = static_cast<Kind>(prng.below(4)),
                       .peer = static_cast<uint32_t>(prng.below(peers)),
                       .order = static_cast<Order>(prng.below(3))};
    const uint64_t dice = prng.below(30);
    work.fence = dice == 0 ? Fence::all : dice == 1 ? Fence::reads : Fence::none;
    work.fails = work.kind == Kind::writes && prng.below(20) == 0;
    work.signalled = prng.below(8) != 0;
    // A read reads a cell that an earlier or a later work writes.
    if (work.kind == Kind::reads) {
      const size_t low = at > 8 ? at - 8 : 0;
      work.cell = static_cast<uint32_t>(std::min(works - 1, low + prng.below(16)));
    }
    return work;
  }

  // Returns the offset of the cell of a work. The cells are at the front. Large writes go behind
  // them and are not checked.
  uint64_t cell_of(size_t work) const { return work * 8; }
  uint64_t large_at() const { return (1 << 20) - 64 - large_bytes; }

  void build() {
    // A read must read a cell that is written at the same peer; otherwise it becomes a message.
    for (History::Work& work : history.works) {
      if (work.kind != History::Kind::reads) continue;
      const History::Work& wrote = history.works[work.cell];
      if (wrote.kind == History::Kind::writes) {
        work.peer = wrote.peer;
      } else {
        work.kind = History::Kind::tells;
      }
    }
  }

  Work work_of(size_t i) {
    History::Work& asked = history.works[i];
    Peer& peer = *there[asked.peer % peers];
    const Imported& target = peer.target;
    asked.peer = name_of(asked.peer % peers);
    numbers[i] = i + 1;
    const auto bytes = std::as_bytes(std::span(&numbers[i], 1));
    Work work;
    switch (asked.kind) {
      case History::Kind::writes:
        work = asked.fails ? write(bytes, peer.others_there)
                           : write(bytes, target.segment, cell_of(i));
        break;
      case History::Kind::adds:
        work = fetch_add(peer.sum_there, 0, 1);
        break;
      case History::Kind::reads:
        work = read(std::as_writable_bytes(std::span(&fetched[i], 1)), target.segment,
                    cell_of(asked.cell));
        break;
      case History::Kind::tells:
        work = i % 7 == 0 ? write(large, target.segment, large_at()).to(target.jetty)
                          : send(bytes, target.jetty);
        work.immediate(i);
        break;
    }
    work.order = asked.order;
    if (!asked.signalled) work.unsignalled();
    return work.fenced(asked.fence).tag(i);
  }

  void look() {
    ++rounds;
    for (const auto& peer : there) look_at(*peer);
    std::erase_if(unseen, [&](size_t i) { return found(i); });
    std::array<Completion, 64> out;
    const size_t count = here.jetty.poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      if (completion.tag >= history.works.size()) {
        if (completion.ok()) imply(history.works.size());
        continue;
      }
      History::Work& work = history.works[completion.tag];
      if (work.status) FAIL("work " << completion.tag << " completed twice");
      if (completion.ok()) imply(completion.tag);
      work.status = completion.status;
      work.completed = ++completions;
      work.read = work.kind == History::Kind::adds ? completion.fetched() : fetched[completion.tag];
    }
  }
  void look_at(Peer& peer) {
    std::array<Completion, 64> out;
    const size_t count = peer.host.jetty.poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      if (!completion.ok()) continue;
      History::Work& work = history.works[completion.immediate];
      ++work.times;
      work.place = peer.arrivals++;
      work.round = rounds;
      if (completion.bytes == sizeof(uint64_t)) receive(peer.host, completion.tag);
    }
  }
  // Looks for the value of write i. No other work writes to its cell.
  bool found(size_t i) {
    History::Work& work = history.works[i];
    const Peer& peer = *there[work.peer % peers];
    if (work.peer != name_of(work.peer % peers))
      return true;  // the incarnation that it was for has ended, so it cannot be executed
    uint64_t cell = 0;
    std::memcpy(&cell, peer.host.memory.data() + cell_of(i), sizeof cell);
    if (cell == 0) return false;
    work.times = 1;
    work.round = rounds;
    return true;
  }
  // Records that the unsignalled works before this one succeeded, because it succeeded.
  void imply(size_t before) {
    for (size_t i = 0; i < before; ++i) {
      History::Work& work = history.works[i];
      if (work.signalled || work.status) continue;
      work.status = Status::ok;
      work.completed = ++completions;
      work.read = fetched[i];
    }
  }

  void check_sum(const Peer& peer, uint32_t name) {
    uint64_t sum = 0;
    std::memcpy(&sum, peer.sum_memory.data(), sizeof sum);
    if (wrong_sum.empty()) wrong_sum = history.contradiction_of_sum(name, sum);
  }

  void cut(uint32_t peer) {
    const Endpoint& other = there[peer]->host.device.endpoint();
    hosts.network().faults.cut(here.device.endpoint(), other, true);
    for (int i = 0; i < 220; ++i) {
      hosts.run_for(10ms);
      look();
    }
    hosts.network().faults.cut(here.device.endpoint(), other, false);
  }
  // Notifications of the last incarnation are polled before it ends; works in flight may end
  // unknown.
  void restart(uint32_t peer, size_t posted) {
    look();
    for (History::Work& work : std::span(history.works).first(posted)) {
      if (!work.status && work.peer == name_of(peer)) work.troubled = true;
    }
    old.push_back({std::move(there[peer]->sum_memory), name_of(peer)});
    const uint32_t life = there[peer]->life;
    const Endpoint at = there[peer]->host.device.endpoint();
    there[peer]->sum.reset();
    there[peer]->others.reset();
    hosts.kill(std::move(there[peer]->host));
    there[peer] = start(wire + "&address=" + to_string(at.address));
    there[peer]->life = life + 1;
  }
  // Cancels some of the last works, by unregistering the memory that they use.
  void cancel(size_t posted) {
    const size_t first = posted > 8 ? posted - 8 : 0;
    const auto memory = std::as_writable_bytes(std::span(numbers).subspan(first, 3));
    Segment segment = here.device.register_memory(memory).value();
    for (size_t i = first; i < first + 3; ++i) history.works[i].troubled = true;
    REQUIRE(segment.unregister().ok());
  }

  void run(const Trouble& trouble) {
    build();
    size_t posted = 0;
    const size_t works = history.works.size();
    const Time limit = hosts.now() + 200s;
    while (completions < works && hosts.now() < limit) {
      while (posted < works && here.jetty.post(work_of(posted)) == 1) {
        const History::Work& work = history.works[posted];
        if (work.kind == History::Kind::writes && !work.fails) unseen.push_back(posted);
        ++posted;
      }
      hosts.run_for(std::chrono::microseconds(5 + prng.below(50)));
      if (trouble.cuts && prng.below(2000) == 0) cut(static_cast<uint32_t>(prng.below(peers)));
      if (trouble.restarts && prng.below(300) == 0) {
        restart(static_cast<uint32_t>(prng.below(peers)), posted);
      }
      if (trouble.cancels && prng.below(200) == 0) cancel(posted);
      look();
      // The completion of this work implies that the unsignalled works before it, of which nothing
      // else is known, have been executed. If no berth is vacant, completions are still to come,
      // and a later round posts it.
      if (posted == works && prng.below(50) == 0) {
        (void)here.jetty.post(write(last_word, there[0]->target.segment, large_at()).tag(works));
      }
    }
    for (uint32_t peer = 0; peer < peers; ++peer) check_sum(*there[peer], name_of(peer));
    for (const auto& [memory, name] : old) {
      uint64_t sum = 0;
      std::memcpy(&sum, memory.data(), sizeof sum);
      if (wrong_sum.empty()) wrong_sum = history.contradiction_of_sum(name, sum);
    }
  }
  std::string contradiction() const {
    return wrong_sum.empty() ? history.contradiction() : wrong_sum;
  }

  std::vector<std::pair<std::vector<std::byte>, uint32_t>>
      old;  // sums of incarnations that have ended
};

JettyOptions random_options(uint64_t seed) {
  Prng prng(seed ^ 0x9e3779b9);
  return {.berths = 32,
          .mode = prng.below(2) == 0 ? ServiceMode::automatic : ServiceMode::initiator,
          .chain = prng.below(4) == 0,
          .in_order = prng.below(4) == 0};
}

TEST_CASE("random works with and without order: no history contradicts the rules") {
  const uint64_t worlds = long_run() ? 1000 : sanitized ? 10 : 100;
  uint64_t ended = 0;
  uint64_t lost = 0;  // channels lost to peers that did not restart
  std::map<Status, uint64_t> ends;
  for (uint64_t i = 1; i <= worlds; ++i) {
    // The last fifth changes with the commit.
    const uint64_t seed = i > worlds - worlds / 5 ? fresh_seed() + i : i;
    World world(seed, 1000, random_options(seed));
    world.run({.cuts = seed % 4 == 0, .restarts = seed % 5 == 0, .cancels = seed % 3 == 0});
    const std::string contradiction = world.contradiction();
    if (!contradiction.empty()) FAIL("seed " << seed << ": " << contradiction);
    ended += world.completions;
    if (seed % 5 != 0) lost += world.here.device.stats().value().channels_lost;
    for (const History::Work& work : world.history.works) ++ends[*work.status];
  }
  CHECK(ended == worlds * 1000);
  // Checks that there was as much trouble as intended.
  CHECK(lost > worlds / 10);
  for (const Status status : {Status::ok, Status::unknown, Status::flushed, Status::peer_restarted,
                              Status::remote_access}) {
    CHECK(ends[status] > worlds / 4);
  }
}

// Runs the example of the essay that introduced UB: message A is A1 A2 A3, message B is B1 B2, and
// A2 is lost. Returns the name of the message that arrived first.
std::string essay(const JettyOptions& options, Order of_b) {
  static unsigned names = 0;
  SimHosts hosts("essay" + std::to_string(++names));
  auto here = hosts.start("mtu=1024&rate=10Mbit", options);
  auto there = hosts.start("mtu=1024&rate=10Mbit", {.berths = 4, .receives = 8});
  const RemoteJetty target = here.device.import(there.line).value().jetty;
  for (uint64_t tag = 0; tag < 4; ++tag) {
    REQUIRE(there.jetty.receive(there.segment.bytes().subspan(tag * 4096, 4096), tag));
  }
  const auto bytes = bytes_like(3 * 1024);
  const auto message = [&](char name, size_t packets, Order order) {
    Work work = send(std::span(bytes).first(packets * 1024), target);
    work.order = order;
    return work.immediate(static_cast<uint64_t>(name));
  };
  const auto arrives = [&] {
    std::array<Completion, 1> out;
    while (there.jetty.poll(out) == 0) hosts.run_for(1us);
    return static_cast<char>(out[0].immediate);
  };
  // Makes the channel, so that the target has answered whether it keeps the order.
  REQUIRE(here.jetty.post(message('0', 1, Order::relaxed)) == 1);
  REQUIRE(arrives() == '0');
  REQUIRE(only_status(here.jetty, 1s) == Status::ok);
  hosts.run_for(10ms);
  const Time begin = hosts.now();
  REQUIRE(here.jetty.post(message('1', 1, Order::none)) == 1);
  REQUIRE(arrives() == '1');
  const Duration packet = hosts.now() - begin;
  REQUIRE(only_status(here.jetty, 1s) == Status::ok);
  hosts.run_for(10ms);

  REQUIRE(here.jetty.post(message('A', 3, Order::relaxed)) == 1);
  REQUIRE(here.jetty.post(message('B', 2, of_b)) == 1);
  hosts.run_for(packet * 3 / 2);
  hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), true);
  hosts.run_for(packet);
  hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), false);
  std::string came;
  while (came.size() < 2) came += arrives();
  for (size_t ended = 0; ended < 2;) {
    const auto completions = here.jetty.wait(1s);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& completion : completions) CHECK(completion.ok());
    ended += completions.size();
  }
  return came;
}

TEST_CASE("the essay's example: B overtakes A, unless B is strong or both are in a chain") {
  for (const ServiceMode mode : {ServiceMode::automatic, ServiceMode::initiator}) {
    const JettyOptions free{.berths = 8, .mode = mode};
    CHECK(essay(free, Order::none) == "BA");
    CHECK(essay(free, Order::relaxed) == "BA");
    CHECK(essay(free, Order::strong) == "AB");
    const JettyOptions chain{.berths = 8, .mode = mode, .chain = true};
    CHECK(essay(chain, Order::none) == "BA");
    CHECK(essay(chain, Order::relaxed) == "AB");
    CHECK(essay(chain, Order::strong) == "AB");
  }
}

// Tests the checker of histories: it must notice when two executions have been swapped.
TEST_CASE("a history of which two executions are swapped contradicts the rules") {
  World world(3, 300, {.berths = 32});
  world.run({});
  REQUIRE(world.history.contradiction().empty());
  unsigned swapped = 0;
  unsigned swapped_rounds = 0;  // of which one was a write
  auto& works = world.history.works;
  for (size_t i = 1; i < works.size(); ++i) {
    for (size_t j = i > 8 ? i - 8 : 0; j < i; ++j) {
      if (works[i].peer != works[j].peer || works[i].times == 0 || works[j].times == 0) continue;
      if (works[i].order != Order::strong || works[j].order == Order::none) continue;
      const bool told =
          works[i].kind == History::Kind::tells && works[j].kind == History::Kind::tells;
      if (!told && works[i].round == works[j].round) continue;
      const auto swap = [&] {
        told ? std::swap(works[i].place, works[j].place)
             : std::swap(works[i].round, works[j].round);
      };
      swap();
      CHECK_FALSE(world.history.contradiction().empty());
      swap();
      ++(told ? swapped : swapped_rounds);
    }
  }
  CHECK(swapped > 50);
  CHECK(swapped_rounds > 20);
}

// A peer that has all the sequence contexts that it may have gets no further one, so it keeps the
// order itself.
TEST_CASE("an initiator that gets no sequence context keeps the order itself") {
  SimHosts hosts("contexts");
  auto here = hosts.start("delay=20us", {.berths = 4});
  auto there = hosts.start("delay=20us", {.berths = 4, .receives = 64});
  const RemoteJetty target = here.device.import(there.line).value().jetty;
  const auto bytes = bytes_like(8);
  std::vector<Jetty> jetties;
  constexpr uint64_t count = 600;
  std::vector<uint64_t> came;
  const auto look = [&] {
    std::array<Completion, 64> out;
    for (const Completion& completion : std::span(out).first(there.jetty.poll(out))) {
      REQUIRE(completion.ok());
      came.push_back(completion.immediate);
      REQUIRE(there.jetty.receive(there.segment.bytes().first(64), 0));
    }
  };
  for (int tag = 0; tag < 64; ++tag)
    REQUIRE(there.jetty.receive(there.segment.bytes().first(64), 0));
  for (uint64_t i = 0; i < count; ++i) {
    jetties.push_back(here.device.jetty({.berths = 4}).value());
    came.clear();
    for (uint64_t n = 0; n < 4; ++n) {
      const Order order = n % 2 == 0 ? Order::relaxed : Order::strong;
      Work work = send(bytes, target).immediate(n);
      work.order = order;
      REQUIRE(jetties.back().post(work) == 1);
    }
    for (size_t ended = 0; ended < 4;) {
      const auto completions = jetties.back().wait(1s);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& completion : completions) REQUIRE(completion.ok());
      ended += completions.size();
      look();
    }
    look();
    // The strong work arrives after all works before it.
    REQUIRE(came.size() == 4);
    CHECK(std::ranges::find(came, 1u) - came.begin() > std::ranges::find(came, 0u) - came.begin());
    CHECK(came.back() == 3);
  }
}

TEST_CASE("with suspend_on_error a failed work suspends its Jetty: no work behind it is executed") {
  for (const ServiceMode mode : {ServiceMode::automatic, ServiceMode::initiator}) {
    auto [hosts, here, there, target] =
        SimPair("suspend" + std::to_string(static_cast<int>(mode)),
                {.network = "delay=20us",
                 .jetty = {.berths = 16, .receives = 4, .mode = mode, .suspend_on_error = true}},
                {.network = "delay=20us", .jetty = {.berths = 4, .receives = 16}});
    const RemoteJetty back = there.device.import(here.line).value().jetty;
    RemoteSegment wrong = target.segment;
    wrong.token = TokenValue(number(wrong.token) + 1);
    const auto bytes = bytes_like(8);
    for (int tag = 0; tag < 8; ++tag)
      REQUIRE(there.jetty.receive(there.segment.bytes().first(64), 0));
    REQUIRE(here.jetty.post(write(bytes, wrong).relaxed().tag(1)) == 1);
    REQUIRE(here.jetty.post(send(bytes, target.jetty).fenced().tag(2)) == 1);
    REQUIRE(here.jetty.post(send(bytes, target.jetty).tag(3)) == 1);
    std::map<uint64_t, Status> told;
    while (told.size() < 3) {
      const auto completions = here.jetty.wait(1s);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& each : completions) told[each.tag] = each.status;
    }
    CHECK(told[1] == Status::remote_access);
    CHECK(told[2] == Status::flushed);
    CHECK(told[3] == Status::flushed);
    CHECK(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::flushed);
    // Meanwhile the Jetty still receives.
    REQUIRE(here.jetty.receive(here.segment.bytes().first(64), 7));
    REQUIRE(there.jetty.post(send(bytes, back)) == 1);
    CHECK(only_status(here.jetty, 1s) == Status::ok);
    REQUIRE(here.jetty.reset().ok());
    CHECK(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::ok);
    std::array<Completion, 16> out;
    CHECK(there.jetty.poll(out) == 2);  // the completion of its own work, and one message
  }
}

TEST_CASE("suspend ends works and lets none begin, while messages arrive, until reset or flush") {
  auto [hosts, here, there, target] =
      SimPair("suspended", {.network = "delay=20us", .jetty = {.berths = 16, .receives = 4}},
              {.network = "delay=20us", .jetty = {.berths = 4, .receives = 16}});
  const RemoteJetty back = there.device.import(here.line).value().jetty;
  const auto bytes = bytes_like(8);
  const auto receive = [](auto& side) {
    REQUIRE(side.jetty.receive(side.segment.bytes().first(64), 7));
  };
  REQUIRE(here.jetty.post(send(bytes, target.jetty)) == 1);  // without a receive for it
  hosts.run_for(1ms);
  REQUIRE(here.jetty.suspend().ok());
  const Status ended = only_status(here.jetty, 1s);
  CHECK((ended == Status::unknown || ended == Status::receiver_not_ready));
  CHECK(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::flushed);
  // A second call ends nothing more.
  REQUIRE(here.jetty.suspend().ok());
  receive(here);
  REQUIRE(there.jetty.post(send(bytes, back)) == 1);
  CHECK(only_status(here.jetty, 1s) == Status::ok);
  CHECK(only_status(there.jetty, 1s) == Status::ok);
  receive(there);
  REQUIRE(here.jetty.reset().ok());
  CHECK(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::ok);
  CHECK(only_status(there.jetty, 1s) == Status::ok);
  // A flushed Jetty stays one that refuses messages.
  REQUIRE(here.jetty.flush().ok());
  REQUIRE(here.jetty.suspend().ok());
  CHECK(status_of(there.jetty, send(bytes, back), 1s) == Status::remote_access);
}

// A fence also waits for works on mapped memory, and for reads only if the application asks for
// that.
TEST_CASE("a fence for reads waits for reads, and for nothing else") {
  auto [hosts, here, there, target] =
      SimPair("fence-reads", {.network = "delay=1ms", .jetty = {.berths = 16}},
              {.network = "delay=1ms", .jetty = {.berths = 4, .receives = 16}});
  const auto bytes = bytes_like(8);
  std::vector<std::byte> large = bytes_like(1 << 19);
  std::array<std::byte, 8> into;
  for (int tag = 0; tag < 8; ++tag)
    REQUIRE(there.jetty.receive(there.segment.bytes().first(64), 0));
  CHECK(status_of(here.jetty, write(bytes, target.segment).tag(0), 1s) == Status::ok);
  const auto order_of = [&, &here = here, &target = target](Fence fence) {
    std::vector<uint64_t> ended;
    REQUIRE(here.jetty.post(read(into, target.segment).tag(1)) == 1);
    REQUIRE(here.jetty.post(write(large, target.segment, 1024).tag(2)) == 1);
    REQUIRE(here.jetty.post(send(bytes, target.jetty).fenced(fence).tag(3)) == 1);
    while (ended.size() < 3) {
      for (const Completion& each : here.jetty.wait(1s)) {
        REQUIRE(each.ok());
        ended.push_back(each.tag);
      }
    }
    return ended;
  };
  CHECK(order_of(Fence::all).back() == 3);
  const auto reads = order_of(Fence::reads);
  CHECK(std::ranges::find(reads, 3u) > std::ranges::find(reads, 1u));
}

}  // namespace
}  // namespace urma::test
