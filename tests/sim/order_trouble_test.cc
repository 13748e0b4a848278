// SPDX-License-Identifier: Apache-2.0
// Order when something fails: works fail or are cancelled, channels die, peers lie or guess tokens.

#include <algorithm>
#include <map>
#include <optional>

#include "tests/catch.h"
#include "tests/sim/stranger.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// A slice of several packets is not written by the same code as one of a single packet.
constexpr size_t several_packets = 20'000;

// The statuses of works that have ended, by tag. A work that has not ended compares unequal to
// each.
struct Told {
  std::map<uint64_t, Status> ends{};
  std::optional<Status> operator[](uint64_t tag) const {
    const auto end = ends.find(tag);
    return end == ends.end() ? std::nullopt : std::optional(end->second);
  }
};

// An initiator, and a target of strong works.
struct Ordered : SimPair {
  explicit Ordered(const std::string& name, const JettyOptions& jetty = {.berths = 16},
                   const DeviceOptions& device = {}, const std::string& wire = "delay=20us",
                   const std::string& wire_back = "")
      : SimPair(name, {.network = wire, .jetty = jetty, .device = device},
                {.network = wire_back.empty() ? wire : wire_back,
                 .jetty = {.berths = 4, .receives = 64}}) {
    for (int i = 0; i < 64; ++i) REQUIRE(there.jetty.receive(there.segment.bytes().first(64), 0));
  }

  Work message() const { return send(bytes, target.jetty); }
  Work update() const { return write(bytes, target.segment); }
  void post(const Work& work) { REQUIRE(here.jetty.post(work) == 1); }
  // Makes the target keep the order from here on.
  void begin_order() {
    post(message().relaxed());
    REQUIRE(only_status(here.jetty, 1s) == Status::ok);
    (void)arrived();
  }
  void cut(bool severed) {
    hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), severed);
  }
  void run(Duration time) {
    std::array<Completion, 64> out;
    for (const Time until = hosts.now() + time; hosts.now() < until;) {
      hosts.run_for(1ms);
      for (const Completion& each : std::span(out).first(here.jetty.poll(out))) {
        told.ends[each.tag] = each.status;
      }
    }
  }
  // Returns how many works ended with this status.
  auto count(Status status) const {
    return std::ranges::count(told.ends, status, [](const auto& end) { return end.second; });
  }
  std::vector<uint64_t> arrived() {
    std::array<Completion, 64> out;
    std::vector<uint64_t> came;
    for (const Completion& each : std::span(out).first(there.jetty.poll(out))) {
      came.push_back(each.immediate);
    }
    return came;
  }
  // Sends wrong tokens from another Jetty, until the target ignores requests.
  void guess(Duration there_and_back = 1ms) {
    Jetty guesses = here.device.jetty({.berths = 32}).value();
    for (uint32_t i = 1; i < 18; ++i) {
      RemoteSegment wrong = target.segment;
      wrong.token = TokenValue(number(wrong.token) + i);
      REQUIRE(guesses.post(write(bytes, wrong)) == 1);
    }
    hosts.run_for(there_and_back);
  }

  std::vector<std::byte> bytes = bytes_like(8);
  Told told{};
};

TEST_CASE("a work that is posted while held strong works are released stays behind them") {
  Ordered pair("let-go");
  pair.begin_order();
  std::array<std::byte, 8> into;
  pair.post(read(into, pair.target.segment).relaxed());
  pair.post(pair.message().strong().immediate(1));
  pair.hosts.run_for(5us);
  pair.hosts.stop(pair.here);  // the answer waits at the stopped host's port
  pair.hosts.run_for(1ms);
  pair.post(pair.message().strong().immediate(2));
  pair.hosts.stop(pair.here, false);
  pair.hosts.run_for(10ms);
  CHECK(pair.arrived() == std::vector<uint64_t>{1, 2});
}

TEST_CASE("an unsignalled work that fails behind an outstanding one returns its berth once") {
  Ordered pair("berth-once", {.berths = 4, .in_order = true});
  RemoteSegment wrong = pair.target.segment;
  wrong.bytes = 4;
  pair.post(pair.update().tag(1));
  pair.post(write(pair.bytes, wrong).unsignalled().tag(2));
  pair.run(10ms);
  CHECK(pair.told[1] == Status::ok);
  CHECK(pair.told[2] == Status::remote_access);
  CHECK(pair.here.jetty.vacant_berths() == 4);
}

TEST_CASE("a reset right after a failure starts no work that was posted before it") {
  Ordered pair("reset-soon", {.berths = 16, .suspend_on_error = true});
  pair.begin_order();
  RemoteSegment wrong = pair.target.segment;
  wrong.token = TokenValue(number(wrong.token) + 1);
  pair.post(write(pair.bytes, wrong).relaxed().tag(1));
  pair.post(pair.message().fenced().tag(2));
  const auto first = pair.here.jetty.wait(1s);
  REQUIRE(first.size() >= 1);
  CHECK(first[0].tag == 1);
  pair.post(pair.message().tag(3));
  const bool both = first.size() > 1;
  REQUIRE(pair.here.jetty.reset().ok());
  pair.run(10ms);
  if (!both) CHECK(pair.told[2] == Status::flushed);
  CHECK(pair.told[3] == Status::flushed);
  CHECK(pair.arrived().empty());
  pair.post(pair.message().tag(4));
  pair.run(10ms);
  CHECK(pair.told[4] == Status::ok);
}

TEST_CASE("when a work fails, works of its Jetty that wait for a receiver end") {
  Ordered pair("suspend-soon", {.berths = 16, .suspend_on_error = true});
  Jetty busy = pair.there.device.jetty({.berths = 1, .receives = 4}).value();
  const RemoteJetty target = pair.here.device.import(busy.descriptor()).value().jetty;
  RemoteSegment wrong = pair.target.segment;
  wrong.token = TokenValue(number(wrong.token) + 1);
  pair.post(send(pair.bytes, target).tag(1));
  pair.run(2ms);
  CHECK(pair.told.ends.empty());
  pair.post(write(pair.bytes, wrong).tag(2));
  pair.run(20ms);
  CHECK(pair.told[2] == Status::remote_access);
  CHECK(pair.told[1] == Status::receiver_not_ready);
}

// The write is retried, like a message for which there is no buffer, but needs no receive slot.
TEST_CASE("a write that finds no room to be parked is not ended by the receiver's time-out") {
  Ordered pair("early-write", {.berths = 512, .receiver_timeout = 5ms});
  pair.begin_order();
  Jetty busy = pair.there.device.jetty({.berths = 1, .receives = 4}).value();
  const RemoteJetty target = pair.here.device.import(busy.descriptor()).value().jetty;
  pair.post(send(pair.bytes, target).strong().tag(1));
  for (uint64_t tag = 2; tag < 402; ++tag) pair.post(pair.update().strong().tag(tag));
  pair.run(100ms);
  CHECK(pair.told[1] == Status::receiver_not_ready);
  CHECK(pair.there.device.stats().value().too_early > 0);
  CHECK(pair.count(Status::ok) == 400);
}

TEST_CASE("a work that was held when its Jetty timed out gets a time-out of its own") {
  Ordered pair("held-time", {.berths = 16, .mode = ServiceMode::initiator},
               {.operation_timeout = 60ms});
  pair.begin_order();
  pair.hosts.run_for(200ms);
  pair.post(pair.message().strong().tag(1));
  pair.post(pair.message().strong().tag(2));
  pair.hosts.run_for(5us);
  pair.hosts.stop(pair.here);
  pair.hosts.run_for(65ms);
  pair.hosts.stop(pair.here, false);
  pair.cut(true);
  pair.run(150ms);
  CHECK(pair.told.ends.size() == 2);
}

// ---- cancelled TASSNs

TEST_CASE("works do not wait for one that was cancelled while its channel was dead") {
  for (const bool before : {true, false}) {
    Ordered pair(std::string("gap") + (before ? "1" : "2"), {.berths = 16},
                 {.operation_timeout = 4s});
    pair.begin_order();
    std::vector<std::byte> other = bytes_like(4096);
    Segment local = pair.here.device.register_memory(other).value();
    pair.cut(true);
    pair.post(pair.update().tag(1));
    pair.post(write(std::span(other).first(8), pair.target.segment, 64).tag(2));
    pair.post(pair.message().strong().tag(3));
    pair.run(before ? 1ms : 2100ms);  // the channel dies after two seconds
    CHECK(pair.here.device.stats().value().channels_lost == (before ? 0 : 1));
    REQUIRE(local.unregister().ok());
    pair.run(before ? 2300ms : 200ms);
    pair.cut(false);
    pair.run(3s);
    CHECK(pair.told[1] == Status::ok);
    CHECK(pair.told[3] == Status::ok);
    pair.post(pair.message().strong().tag(4));
    pair.run(1s);
    CHECK(pair.told[4] == Status::ok);
  }
}

TEST_CASE("works do not wait for one that is withdrawn on a living channel") {
  Ordered pair("withdrawn");
  pair.begin_order();
  std::vector<std::byte> other = bytes_like(4096);
  Segment local = pair.here.device.register_memory(other).value();
  pair.cut(true);
  pair.post(write(std::span(other).first(8), pair.target.segment, 64).tag(1));
  pair.post(pair.message().strong().tag(2).immediate(7));
  pair.run(1ms);
  REQUIRE(local.unregister().ok());
  pair.cut(false);
  pair.run(100ms);
  CHECK(pair.told[2] == Status::ok);
  CHECK(pair.arrived() == std::vector<uint64_t>{7});
}

// A work can ask the target for a sequence context. If that work is withdrawn, its answer does not
// tell the initiator whether the target has made the context.
TEST_CASE("the answer to a withdrawn work does not say whether the target keeps the order") {
  Ordered pair("withdrawn-asks", {.berths = 16}, {}, "delay=20us&rate=1Gbit");
  pair.post(pair.message().tag(1));
  pair.run(1ms);
  const auto large = bytes_like(60'000);
  pair.cut(true);
  pair.post(write(large, pair.target.segment, 64).strong().tag(2));
  pair.hosts.run_for(10us);
  pair.cut(false);
  REQUIRE(pair.here.jetty.flush().ok());
  pair.run(100ms);
  REQUIRE(pair.here.jetty.reset().ok());
  pair.cut(true);
  pair.post(pair.message().strong().tag(3));
  pair.hosts.run_for(10us);
  pair.cut(false);
  pair.post(pair.message().tag(4));
  pair.run(100ms);
  CHECK(pair.told[1] == Status::ok);
  CHECK(pair.told[2] == Status::unknown);
  CHECK(pair.told[3] == Status::ok);
  CHECK(pair.told[4] == Status::ok);
}

TEST_CASE("a slice that is parked behind a withdrawn work is executed") {
  Ordered pair("withdrawn-parked");
  pair.begin_order();
  std::vector<std::byte> other = bytes_like(4096);
  Segment local = pair.here.device.register_memory(other).value();
  pair.cut(true);
  pair.post(write(std::span(other).first(8), pair.target.segment, 64).tag(1));
  pair.hosts.run_for(10us);
  pair.cut(false);
  pair.post(pair.message().strong().tag(2).immediate(7));
  pair.hosts.run_for(25us);
  CHECK(pair.there.device.stats().value().parked == 1);
  REQUIRE(local.unregister().ok());
  pair.run(100ms);
  CHECK(pair.told[2] == Status::ok);
  CHECK(pair.arrived() == std::vector<uint64_t>{7});
}

TEST_CASE("works do not wait for those that ended because no channel could be made") {
  for (const size_t bytes : {size_t{8}, several_packets}) {
    Ordered pair("unreachable" + std::to_string(bytes), {.berths = 16},
                 {.operation_timeout = 300ms});
    pair.begin_order();
    pair.cut(true);
    for (uint64_t tag = 1; tag < 4; ++tag) pair.post(pair.update().tag(tag));
    pair.run(5s);
    CHECK(pair.told.ends.size() == 3);
    pair.cut(false);
    pair.bytes = bytes_like(bytes);
    for (uint64_t tag = 4; tag < 7; ++tag) {
      pair.post(pair.update().strong().tag(tag));
      pair.run(1s);
      CHECK(pair.told[tag] == Status::ok);
    }
  }
}

TEST_CASE("works do not wait for one that the target ignored and does not answer") {
  for (const ServiceMode mode : {ServiceMode::initiator, ServiceMode::automatic}) {
    for (const size_t bytes : {size_t{8}, several_packets}) {
      Ordered pair("deaf-order" + std::to_string(static_cast<int>(mode)) + std::to_string(bytes),
                   {.berths = 16, .mode = mode}, {.operation_timeout = 300ms});
      pair.begin_order();
      pair.guess();
      pair.post(pair.update().relaxed().tag(1));
      pair.run(2s);
      CHECK(pair.told[1] == Status::unknown);
      pair.bytes = bytes_like(bytes);
      for (uint64_t tag = 2; tag < 5; ++tag) {
        pair.post(pair.update().strong().tag(tag));
        pair.run(1s);
        CHECK(pair.told[tag] == Status::ok);
      }
    }
  }
}

TEST_CASE("until a target has confirmed that it keeps order, no work follows the one that asked") {
  Ordered pair("asking");
  pair.post(pair.update().tag(0));
  REQUIRE(only_status(pair.here.jetty, 1s) == Status::ok);
  pair.cut(true);
  pair.post(pair.message().relaxed().immediate(1));
  pair.hosts.run_for(10us);
  pair.cut(false);
  pair.post(pair.message().relaxed().immediate(2));
  pair.post(pair.message().strong().immediate(3));
  pair.run(100ms);
  CHECK(pair.arrived() == std::vector<uint64_t>{1, 2, 3});
}

// docs/protocol.md: a target does not wait for a TASSN that was lost with a channel, because the
// oldest outstanding slice says that none before it will come.
TEST_CASE("in a sequence context only the oldest outstanding slice has Alloc") {
  for (const size_t size : {size_t{8}, several_packets}) {
    Ordered pair("alloc" + std::to_string(size));
    pair.begin_order();
    std::map<uint32_t, bool> seen;
    pair.hosts.network().faults.on_leave = [&](const Endpoint&, std::span<const std::byte> packet) {
      const auto tp = Rtph::parse(packet.first<Rtph::size>());
      if (!tp || TpOpcode(tp->opcode) != TpOpcode::data) return;
      const auto request = parse_request(packet.subspan<Rtph::size>());
      if (!request || !request->headers.base.in_context) return;
      seen[request->headers.base.tassn] = request->headers.base.allocate;
    };
    pair.bytes = bytes_like(size);
    for (uint64_t tag = 1; tag < 4; ++tag) pair.post(pair.update().strong().tag(tag));
    pair.run(100ms);
    pair.hosts.network().faults.on_leave = nullptr;
    REQUIRE(pair.count(Status::ok) == 3);
    REQUIRE(seen.size() == 3);
    const uint32_t oldest = seen.begin()->first;
    for (const auto& [tassn, allocate] : seen) CHECK(allocate == (tassn == oldest));
  }
}

TEST_CASE("an initiator without a sequence context keeps the order even if a packet is lost") {
  Ordered pair("refused");
  std::vector<Jetty> others;
  // These are as many sequence contexts as one peer may have.
  for (int i = 0; i < 600; ++i) {
    others.push_back(pair.here.device.jetty({.berths = 1}).value());
    REQUIRE(others.back().post(pair.update().strong()) == 1);
    REQUIRE(only_status(others.back(), 1s) == Status::ok);
  }
  pair.begin_order();
  const uint64_t held = pair.here.device.stats().value().held;
  pair.cut(true);
  pair.post(pair.message().relaxed().immediate(1));
  pair.hosts.run_for(10us);
  pair.cut(false);
  pair.post(pair.message().strong().immediate(2));
  pair.run(100ms);
  CHECK(pair.arrived() == std::vector<uint64_t>{1, 2});
  CHECK(pair.here.device.stats().value().held == held + 1);
}

TEST_CASE("at most as many atomics are outstanding as their target keeps results") {
  Ordered pair("results", {.berths = 256});
  std::ranges::fill(pair.there.memory, std::byte{0});
  SimHosts::Host& there = pair.there;
  Segment words = there.device.register_memory(there.memory, {.rights = Rights::atomic}).value();
  const RemoteSegment counter = pair.here.device.import(words.descriptor()).value().segment;
  pair.post(fetch_add(counter, 0, 1).tag(0));
  pair.run(1ms);
  pair.hosts.network().faults.cut(there.device.endpoint(), pair.here.device.endpoint(), true);
  for (uint64_t tag = 1; tag < 200; ++tag) pair.post(fetch_add(counter, 0, 1).tag(tag));
  pair.run(20ms);
  const uint64_t executed = there.device.stats().value().executed;
  CHECK(executed > 32);
  CHECK(executed <= 65);
  pair.hosts.network().faults.cut(there.device.endpoint(), pair.here.device.endpoint(), false);
  pair.run(200ms);
  for (uint64_t tag = 0; tag < 200; ++tag) CHECK(pair.told[tag] == Status::ok);
  uint64_t sum = 0;
  std::memcpy(&sum, there.memory.data(), sizeof sum);
  CHECK(sum == 200);
}

// ---- peers that lie

// A peer that numbers the slices of a queue as it likes.
struct Liar {
  explicit Liar(const std::string& name, const std::string& address = "fd00::66")
      : hosts(name), owner(hosts.start("address=fd00::31")), who(hosts, address) {
    REQUIRE(who.connect(owner.device.endpoint()));
    std::ranges::fill(owner.memory, std::byte{0});
  }
  struct Slice {
    uint32_t tassn;
    Order order = Order::none;
    bool allocate = false;
    uint32_t wrong = 0;  // added to the token, to make it wrong
    uint32_t bytes = 1;
    std::byte value{1};
    bool retry = false;
    TaOpcode opcode = TaOpcode::write;
    uint32_t as = 0;  // the TPMSN; 0 means the next one
  };
  void put(const Slice& slice) { put(who, slice); }
  void put(Stranger& by, const Slice& slice) {
    const RemoteSegment segment = owner.segment.local();
    TaRequest request;
    request.base.opcode = static_cast<uint8_t>(slice.opcode);
    request.base.tassn = slice.tassn & 0xffff;
    request.base.rc_id = 77;
    request.base.token_present = true;
    request.base.order = slice.order;
    request.base.allocate = slice.allocate;
    request.base.in_context = slice.tassn != 0 && slice.order != Order::none;
    request.base.retry = slice.retry;
    request.token.token = number(segment.token) + slice.wrong;
    request.memory = {
        .address = segment.address, .token_id = number(segment.token_id), .length = slice.bytes};
    const std::vector<std::byte> data(slice.bytes, slice.value);
    by.send({.slice = slice.as != 0 ? slice.as : ++last}, request, data);
  }
  Statistics stats() { return owner.device.stats().value(); }

  SimHosts hosts;
  SimHosts::Host owner;
  Stranger who;
  uint32_t last = 0;
};

constexpr Liar::Slice first = {.tassn = 0, .order = Order::relaxed, .allocate = true};

TEST_CASE("a peer's requests are ignored while one of its slices is parked") {
  Liar liar("deaf-parked");
  liar.put(first);
  const Liar::Slice parked{.tassn = 2, .order = Order::strong, .as = 50};
  liar.put(parked);
  CHECK(liar.stats().parked == 1);
  for (uint32_t i = 0; i < 17; ++i) liar.put({.tassn = 3 + i, .wrong = 1 + i});
  liar.put(parked);
  liar.hosts.run_for(200ms);
  liar.put({.tassn = 1});
  liar.put({.tassn = 2, .order = Order::strong, .value = std::byte{5}, .retry = true});
  liar.hosts.run_for(10ms);
  CHECK(liar.owner.memory[0] == std::byte{5});
}

TEST_CASE("parked slices do not let a peer try tokens faster") {
  Liar liar("parked-guesses");
  liar.put(first);
  for (uint32_t i = 0; i < 200; ++i) {
    liar.put({.tassn = 2 + i, .order = Order::strong, .wrong = 1 + i});
  }
  liar.put({.tassn = 1});
  liar.hosts.run_for(10ms);
  CHECK(liar.stats().parked == 200);
  CHECK(liar.stats().refused <= 17);
}

TEST_CASE("a parked slice keeps room for its answers when another peer takes all the rest") {
  Liar liar("parked-answers");
  liar.put(first);
  for (uint32_t i = 0; i < 250; ++i) {
    liar.put({.tassn = 2 + i, .order = Order::strong, .bytes = 16, .opcode = TaOpcode::fetch_add});
  }
  std::vector<std::unique_ptr<Stranger>> others;
  uint32_t most = 8192 + 512;
  for (int i = 0; i < 8; ++i, most /= 2) {
    others.push_back(std::make_unique<Stranger>(liar.hosts, "fd00::7" + std::to_string(i)));
    others.back()->life += static_cast<uint64_t>(i) + 1;
    REQUIRE(others.back()->connect(liar.owner.device.endpoint()));
    for (uint32_t n = 0; n < most + 20; ++n) {
      liar.put(*others.back(), {.tassn = n, .bytes = 16, .opcode = TaOpcode::fetch_add});
      if (n % 1000 == 0) liar.who.keep_alive();
    }
  }
  const uint64_t refused = liar.stats().refused;
  liar.put({.tassn = 1});
  liar.hosts.run_for(10ms);
  CHECK(liar.stats().refused >= refused + 250);
}

TEST_CASE("a peer may park 256 packets of at most 1 MiB, and further ones are sent again") {
  Liar liar("park-many");
  liar.put(first);
  for (uint32_t i = 0; i < 300; ++i) liar.put({.tassn = 2 + i, .order = Order::strong});
  CHECK(liar.stats().parked == 256);
  CHECK(liar.stats().too_early == 44);
  liar.put({.tassn = 1});
  liar.hosts.run_for(10ms);
  CHECK(liar.stats().executed == 1 + 1 + 256);
  // No parked slice is left.
  liar.put({.tassn = 600, .order = Order::strong});
  CHECK(liar.stats().parked == 257);
}

TEST_CASE("a peer's parked slices are at most half of what is free") {
  Liar liar("park-others");
  std::vector<std::unique_ptr<Stranger>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<Stranger>(liar.hosts, "fd00::7" + std::to_string(i)));
    all.back()->life += static_cast<uint64_t>(i) + 1;
    REQUIRE(all.back()->connect(liar.owner.device.endpoint()));
  }
  uint64_t parked = 0;
  for (auto& each : all) {
    liar.put(*each, first);
    for (uint32_t n = 2; n < 300; ++n) liar.put(*each, {.tassn = n, .order = Order::strong});
    const uint64_t now = liar.stats().parked;
    CHECK(now - parked >= 32);
    CHECK(now - parked <= 256);
    parked = now;
  }
  CHECK(parked > 900);
}

TEST_CASE("a repeated write that comes after its successors in order changes nothing") {
  Liar liar("late-retry");
  liar.put(first);
  liar.put({.tassn = 1, .value = std::byte{3}});
  liar.put({.tassn = 2, .order = Order::strong, .value = std::byte{4}});
  liar.hosts.run_for(1ms);
  CHECK(liar.owner.memory[0] == std::byte{4});
  liar.put({.tassn = 1, .value = std::byte{3}, .retry = true});
  liar.hosts.run_for(1ms);
  CHECK(liar.owner.memory[0] == std::byte{4});
  CHECK(liar.stats().repeated == 1);
}

TEST_CASE("one slice that its target dropped does not stop a stream without pauses") {
  Ordered pair("dropped-stream", {.berths = 64}, {.operation_timeout = 300ms});
  pair.begin_order();
  pair.guess();
  pair.post(pair.update().strong().tag(1));  // the target ignores requests for 100 ms
  pair.run(1ms);
  for (uint64_t tag = 2; tag < 102; ++tag) {
    pair.run(100ms);
    pair.post(pair.update().strong().tag(tag));
  }
  pair.run(2s);
  CHECK(pair.told[1] == Status::unknown);
  CHECK(pair.told.ends.size() == 101);
  CHECK(pair.count(Status::ok) > 90);
}

// Without an answer to one TASSN, the window of TASSNs would end 1024 behind it.
TEST_CASE("one slice that its target dropped does not stop works without order") {
  Ordered pair("dropped-window", {.berths = 64}, {.operation_timeout = 300ms});
  pair.guess();
  pair.post(pair.update().tag(1));
  pair.run(500ms);
  REQUIRE(pair.told[1] == Status::unknown);
  for (uint64_t tag = 2; tag < 2002; ++tag) {
    pair.post(pair.update().tag(tag));
    pair.run(1ms);
  }
  CHECK(pair.told.ends.size() == 2001);
  CHECK(pair.count(Status::ok) == 2000);
}

// The target answers cancelled TASSNs even without a record for their queue.
TEST_CASE("a dropped slice does not stop its queue when the target has no room for records") {
  Ordered pair("dropped-no-record", {.berths = 64},
               {.operation_timeout = 300ms, .limits = {.jetties = 5000}});
  {
    const Jetty without_receives = pair.there.device.jetty({.berths = 1}).value();
    const RemoteJetty target = pair.here.device.import(without_receives.descriptor()).value().jetty;
    std::vector<Jetty> others;
    Status last = Status::ok;
    for (int i = 0; i < 4900 && last != Status::no_resources; ++i) {
      others.push_back(pair.here.device.jetty({.berths = 1}).value());
      REQUIRE(others.back().post(send(pair.bytes, target)) == 1);
      last = only_status(others.back(), 1s);
    }
    REQUIRE(last == Status::no_resources);
  }
  pair.guess();
  pair.post(pair.update().tag(1));
  pair.run(500ms);
  REQUIRE(pair.told[1] == Status::unknown);
  for (uint64_t tag = 2; tag < 1502; ++tag) {
    (void)pair.here.jetty.post(pair.update().tag(tag));
    pair.run(1ms);
  }
  CHECK(pair.told.ends.size() == 1501);
  CHECK(pair.count(Status::ok) == 1500);
}

// The acknowledgement comes before the device has settled the frame, or together with that.
TEST_CASE(
    "a slice that is acknowledged and dropped before its frame settles does not stop its queue") {
  for (const std::string late : {"hold=12ms", "settle=12ms", "settle=30ms", "hold=6ms&settle=20ms",
                                 "hold_jitter=12ms&settle_jitter=12ms"}) {
    INFO(late);
    Ordered pair("dropped-held-" + late, {.berths = 64, .suspend_on_error = true}, {}, late,
                 "delay=20us");
    pair.guess(40ms);  // the target ignores requests from 24 ms to 124 ms
    RemoteSegment wrong = pair.target.segment;
    wrong.bytes = 4;
    pair.post(pair.update().tag(1));
    pair.hosts.run_for(5us);
    pair.post(write(pair.bytes, wrong).tag(2));
    pair.hosts.run_for(150ms);
    pair.run(1ms);
    REQUIRE(pair.told[1] == Status::unknown);
    REQUIRE(pair.told[2] == Status::remote_access);
    REQUIRE(pair.here.jetty.reset().ok());
    for (uint64_t tag = 3; tag < 1503; ++tag) {
      (void)pair.here.jetty.post(pair.update().tag(tag));
      pair.run(1ms);
    }
    pair.run(100ms);
    CHECK(pair.told.ends.size() == 1502);
    CHECK(pair.count(Status::ok) == 1500);
  }
}

// The slice is cancelled in flight, which takes longer than a withdrawal, and is then dropped at
// the target.
TEST_CASE("a slice that is dropped after it was cancelled does not block later works") {
  Ordered pair("dropped-late", {.berths = 64}, {.operation_timeout = 300ms}, "delay=10ms");
  pair.begin_order();
  std::vector<std::byte> other = bytes_like(4096);
  Segment local = pair.here.device.register_memory(other).value();
  pair.guess(50ms);
  pair.run(45ms);  // the target ignores requests from 10 ms to 110 ms
  pair.post(write(std::span(other).first(8), pair.target.segment, 64).strong().tag(1));
  pair.run(7ms);
  pair.post(pair.update().strong().tag(2));
  REQUIRE(local.unregister().ok());
  for (uint64_t tag = 3; tag < 402; ++tag) {
    pair.run(5ms);
    pair.post(pair.update().strong().tag(tag));
  }
  pair.run(1s);
  CHECK(pair.told[1] == Status::unknown);
  CHECK(pair.there.device.stats().value().ignored == 1);
  CHECK(pair.told.ends.size() == 401);
  CHECK(pair.count(Status::ok) == 400);
}

// The withdrawal of the write takes 8 ms. The channel dies during this time, or before or after it.
TEST_CASE("a work that is being withdrawn when its channel dies does not block later works") {
  for (int ms = 1970; ms < 1988; ms += 2) {
    INFO("ms " << ms);
    Ordered pair("withdrawn-died-" + std::to_string(ms), {.berths = 16}, {.operation_timeout = 4s});
    pair.begin_order();
    std::vector<std::byte> other = bytes_like(4096);
    Segment local = pair.here.device.register_memory(other).value();
    pair.cut(true);
    pair.post(pair.update().tag(1));
    pair.post(write(std::span(other).first(8), pair.target.segment, 64).tag(2));
    pair.post(pair.message().strong().tag(3));
    pair.run(std::chrono::milliseconds(ms));
    REQUIRE(local.unregister().ok());
    pair.run(1300ms);
    pair.cut(false);
    pair.run(6s);
    CHECK(pair.told[1] == Status::ok);
    CHECK(pair.told[3] == Status::ok);
  }
}

}  // namespace
}  // namespace urma::test
