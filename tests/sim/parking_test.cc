// SPDX-License-Identifier: Apache-2.0
// Attacks on a target that keeps the order for a peer. The attacker may or may not know the tokens.

#include <algorithm>

#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Slices of a stranger's queue that has a sequence context. Slices 0 and 1 are writes, of which 1
// is missing; slice 2 waits for it.
struct Parked {
  explicit Parked(const std::string& name)
      : hosts(name),
        owner(hosts.start("address=fd00::31", {.berths = 4, .receives = 4})),
        who(hosts, "fd00::66") {
    REQUIRE(who.connect(owner.device.endpoint()));
    REQUIRE(owner.jetty.receive(buffer, 1));
  }

  struct Part {
    uint32_t slice = 50;
    bool last = true;
    uint32_t offset = 0;  // in the slice
    size_t size = Stranger::mtu;
    std::byte value{1};
  };
  TaRequest request(TaOpcode opcode, uint32_t tassn, Order order) const {
    TaRequest request;
    request.base = {.opcode = static_cast<uint8_t>(opcode), .token_present = true};
    request.base.tassn = tassn;
    request.base.rc_id = 77;
    request.base.order = order;
    request.base.in_context = order == Order::strong;
    return request;
  }
  void send(Stranger& by, uint32_t slice, bool last, const TaRequest& request, size_t size,
            std::byte value) {
    const std::vector<std::byte> data(size, value);
    by.send({.slice = slice, .last = last}, request, data);
  }
  // Sends one part of a strong send.
  void message(const Part& part, uint32_t tassn = 2, uint32_t wrong = 0,
               Order order = Order::strong) {
    TaRequest packet = request(TaOpcode::send, tassn, order);
    const RemoteJetty jetty = owner.jetty.local();
    packet.target.target = number(jetty.id);
    packet.offset.kib = part.offset / 1024;
    packet.token.token = number(jetty.token) + wrong;
    send(who, part.slice, part.last, packet, part.size, part.value);
  }
  void write(Stranger& by, const TaRequest& base, const Part& part, uint64_t at, uint32_t length) {
    TaRequest packet = base;
    const RemoteSegment segment = owner.segment.local();
    packet.token.token = number(segment.token);
    packet.memory = {
        .address = segment.address + at, .token_id = number(segment.token_id), .length = length};
    send(by, part.slice, part.last, packet, part.size, part.value);
  }
  void begin_order() {
    TaRequest first = request(TaOpcode::write, 0, Order::relaxed);
    first.base.allocate = true;
    write(who, first, {.slice = 1, .size = 1}, 0, 1);
  }
  void fill_gap() {
    write(who, request(TaOpcode::write, 1, Order::none), {.slice = 2, .size = 1}, 0, 1);
    hosts.run_for(1ms);
  }
  uint64_t parked() { return owner.device.stats().value().parked; }
  size_t arrived() {
    std::array<Completion, 4> out;
    return owner.jetty.poll(out);
  }

  SimHosts hosts;
  SimHosts::Host owner;
  Stranger who;
  std::vector<std::byte> buffer = std::vector<std::byte>(4096);
};

TEST_CASE("parking: a slice with too many packets ends once, and leaves no state") {
  Parked pair("p-more");
  pair.begin_order();
  const bool last_first = GENERATE(true, false);
  if (last_first) pair.message({.offset = 1024, .size = 8});
  pair.message({.last = false, .value = std::byte{2}});
  pair.message({.last = false, .value = std::byte{3}});
  if (!last_first) pair.message({.offset = 1024, .size = 8});
  REQUIRE(pair.parked() == 1);
  pair.fill_gap();
  std::array<Completion, 4> out;
  REQUIRE(pair.owner.jetty.poll(out) == 1);
  CHECK(out[0].bytes == 1032);
  // The application may use the buffer again.
  std::ranges::fill(pair.buffer, std::byte{0xee});
  pair.message({.last = false, .value = std::byte{4}});
  pair.hosts.run_for(1ms);
  CHECK(pair.buffer[0] == std::byte{0xee});
  CHECK(pair.owner.jetty.vacant_receives() == 4);
  // The end of its channel removes all that is left of the slice.
  ++pair.who.life;
  REQUIRE(pair.who.connect(pair.owner.device.endpoint()));
  REQUIRE(pair.owner.jetty.receive(pair.buffer, 2));
  REQUIRE(pair.owner.jetty.flush().ok());
  pair.hosts.run_for(1ms);
  CHECK(pair.arrived() == 1);
}

TEST_CASE("parking: a write that leaves its segment changes nothing") {
  Parked pair("p-bounds");
  std::ranges::fill(pair.owner.memory, std::byte{0});
  pair.begin_order();
  const uint64_t at = pair.owner.segment.bytes().size() - 1024;
  const TaRequest strong = pair.request(TaOpcode::write, 2, Order::strong);
  pair.write(pair.who, strong, {.last = false}, at, 1500);
  pair.write(pair.who, strong, {.size = 476}, at + 1024, 1500);
  REQUIRE(pair.parked() == 1);
  pair.fill_gap();
  CHECK(pair.owner.device.stats().value().refused == 1);
  CHECK(pair.owner.memory[at] == std::byte{0});
}

TEST_CASE("parking: slices of a peer whose requests are now ignored are removed") {
  Parked pair("p-deaf");
  pair.begin_order();
  pair.message({.size = 8});
  REQUIRE(pair.parked() == 1);
  for (uint32_t i = 0; i < 17; ++i) {
    pair.message({.slice = 100 + i, .size = 8}, 3 + i, 1 + i, Order::none);
  }
  pair.hosts.run_for(300ms);
  pair.fill_gap();
  pair.message({.size = 8});
  pair.hosts.run_for(1ms);
  CHECK(pair.arrived() == 1);
}

// Each stranger takes half of the answers that are left, and acknowledges none. A parked slice
// needs memory for its packets, but only one answer.
TEST_CASE(
    "parking: when answers are scarce, the packets of a parked slice do not count as answers") {
  Parked pair("p-scarce");
  std::vector<std::unique_ptr<Stranger>> others;
  const TaRequest refused = pair.request(TaOpcode::fetch_add, 0, Order::none);
  const auto ask = [&](Stranger& who, uint32_t n) {
    TaRequest request = refused;
    request.base.tassn = n & 0xffff;
    pair.write(who, request, {.slice = 100 + n, .size = 16}, 0, 16);
  };
  uint32_t most = 8192 + 512;
  for (uint32_t i = 0; i < 9; ++i, most /= 2) {
    others.push_back(std::make_unique<Stranger>(pair.hosts, "fd00::7" + std::to_string(i)));
    others.back()->life += i + 1;
    REQUIRE(others.back()->connect(pair.owner.device.endpoint()));
    for (uint32_t n = 0; n < most + 20; ++n) {
      ask(*others.back(), n);
      if (n % 1000 == 0) pair.who.keep_alive();
    }
  }
  pair.begin_order();
  for (uint32_t i = 0; i < 3; ++i) pair.message({.slice = 50 + i, .last = false}, 2 + i, 1);
  CHECK(pair.parked() == 3);
  const uint64_t before = pair.owner.device.stats().value().refused;
  for (uint32_t n = 0; n < 300; ++n) ask(pair.who, 400 + n);
  const uint64_t answered = pair.owner.device.stats().value().refused - before;
  CHECK(answered > 0);
  CHECK(answered < 300);
}

}  // namespace
}  // namespace urma::test
