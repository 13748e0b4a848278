// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/sequences.h"

#include <algorithm>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::Assemblies;
using jetty::Assembly;
using jetty::ExecutionRecord;
using jetty::Parking;
using jetty::Sequences;
using Verdict = Assembly::Verdict;

constexpr PeerId sender{.index = 0, .generation = 1};
constexpr uint32_t packet_bytes = 1024;
constexpr uint32_t room = 1024;  // packets

// One queue of one peer, whose first slice asks for an order. Its slices are writes.
struct OrderedQueue {
  struct Slice {
    Order order = Order::strong;
    uint32_t packets = 1;
    TaOpcode opcode = TaOpcode::write;
  };

  OrderedQueue() {
    peers.at(sender).facts.packet_bytes = packet_bytes;
    Assembly first{.peer = sender};
    REQUIRE(sequences.prepare(first, &record, {.allocate = true}));
  }
  static ParsedRequest request(uint32_t number, const Slice& slice) {
    ParsedRequest out;
    out.info = find_opcode(static_cast<uint8_t>(slice.opcode));
    out.headers.base = {.opcode = static_cast<uint8_t>(slice.opcode),
                        .tassn = number,
                        .order = slice.order,
                        .allocate = number == 0};
    out.headers.memory.length = slice.packets * packet_bytes;
    return out;
  }
  // A packet of the slice is its first one to arrive. Returns what is to become of the slice.
  Assembly begin(const transport::Received& packet, const Slice& slice) {
    const uint32_t number = packet.slice;
    const ParsedRequest parsed = request(number, slice);
    Assembly fresh{.peer = sender,
                   .slice = number,
                   .tassn = number,
                   .info = parsed.info,
                   .order = slice.order,
                   .needed = slice.packets};
    fresh.number = record.unwrap(number);
    REQUIRE(record.see(fresh.number));
    sequences.note(fresh, record, parsed.headers.base);
    const bool now = sequences.its_turn(fresh, packet, parsed);
    REQUIRE(now == (fresh.verdict == Verdict::run));
    return fresh;
  }
  Assembly begin(uint32_t number, const Slice& slice) {
    return begin(packet(number, 0, slice), slice);
  }
  // Packet `index` of a slice, whose bytes name it.
  transport::Received packet(uint32_t number, uint32_t index, const Slice& slice) {
    bytes = {std::byte(number), std::byte(index)};
    return {.peer = sender,
            .slice = number,
            .last = index + 1 == slice.packets,
            .head = std::span(bytes).first(1),
            .bytes = bytes};
  }
  void require_empty() {
    CHECK(sequences.parked() == 0);
    CHECK(peers.at(sender).parked == 0);
    CHECK(peers.at(sender).assemblies == 0);
  }

  std::array<std::byte, 2> bytes{};
  jetty::PeerStates peers{1};
  ExecutionRecord record{0};
  Assemblies assemblies{64, peers};
  Sequences sequences{4, room, peers, assemblies};
};

// Slices that arrive in any order of their packets, executed when the last packet has arrived, as
// the target does it. Requires of each strong slice that all before it have passed.
class RandomOrder {
 public:
  explicit RandomOrder(uint64_t seed) : prng_(seed) {
    for (uint32_t i = 0; i < count; ++i) {
      static constexpr Order orders[] = {Order::none, Order::relaxed, Order::strong};
      slices_.push_back(
          {.order = orders[prng_.below(3)], .packets = 1 + static_cast<uint32_t>(prng_.below(3))});
    }
    slices_[0] = {.order = Order::relaxed, .packets = 1};
  }

  void run() {
    arrive(0, 0);
    std::vector<std::pair<uint32_t, uint32_t>> packets;
    for (uint32_t i = 1; i < count; ++i) {
      for (uint32_t index = 0; index < slices_[i].packets; ++index) packets.push_back({i, index});
    }
    for (size_t i = packets.size(); i > 1; --i) std::swap(packets[i - 1], packets[prng_.below(i)]);
    for (const auto& [slice, index] : packets) arrive(slice, index);
    REQUIRE(std::ranges::count(executed_, true) == count);
    queue_.require_empty();
  }
  uint32_t parked() const { return parked_; }

 private:
  static constexpr uint32_t count = 24;

  void arrive(uint32_t number, uint32_t index) {
    const OrderedQueue::Slice& slice = slices_[number];
    const transport::Received packet = queue_.packet(number, index, slice);
    arrived_[number].push_back(index);
    if (Assembly* stored = queue_.assemblies.find(packet)) {
      if (stored->verdict == Verdict::parked) {
        return queue_.sequences.keep(*stored, packet, OrderedQueue::request(number, slice));
      }
      return take(*stored);
    }
    const Assembly fresh = queue_.begin(packet, slice);
    if (slice.order == Order::none) passed_[number] = true;
    Assembly& stored = queue_.assemblies.create(fresh);
    if (fresh.verdict == Verdict::run) {
      take(stored);
    } else {
      REQUIRE(fresh.verdict == Verdict::parked);
      ++parked_;
      queue_.sequences.park(stored, packet, OrderedQueue::request(number, slice));
    }
    advance();
  }
  void take(Assembly& assembly) {
    ++assembly.packets;
    if (!assembly.whole()) return;
    execute(assembly);
    queue_.assemblies.erase(assembly);
    advance();
  }
  void execute(Assembly& assembly) {
    const uint32_t number = assembly.slice;
    REQUIRE_FALSE(executed_[number]);
    if (assembly.order == Order::strong) {
      for (uint32_t before = 0; before < number; ++before) REQUIRE(passed_[before]);
    }
    executed_[number] = passed_[number] = true;
    queue_.sequences.pass(assembly);
  }
  void advance() {
    while (Assembly* next = queue_.sequences.next(queue_.record.context)) {
      REQUIRE(next->verdict == Verdict::parked);
      REQUIRE(queue_.sequences.find(queue_.record, next->number) == next);
      next->verdict = Verdict::run;
      const auto place = [&](const transport::Received& packet) {
        // Packets come back as they arrived.
        REQUIRE(packet.bytes[0] == std::byte(next->slice));
        REQUIRE(packet.bytes[1] == std::byte(arrived_[next->slice][next->packets]));
        ++next->packets;
        if (next->whole()) execute(*next);
        return next->whole();
      };
      if (queue_.sequences.unpark(*next, place)) queue_.assemblies.erase(*next);
    }
  }

  Prng prng_;
  std::vector<OrderedQueue::Slice> slices_;
  std::array<std::vector<uint32_t>, count> arrived_;
  std::array<bool, count> executed_{};
  std::array<bool, count> passed_{};
  uint32_t parked_ = 0;
  OrderedQueue queue_;
};

TEST_CASE("sequences: strong slices wait for those before them, whatever the order of arrival") {
  uint32_t parked = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    RandomOrder order(seed);
    order.run();
    parked += order.parked();
  }
  CHECK(parked > 300);
}

// Parks the slice.
Assembly& park(OrderedQueue& queue, uint32_t number, const OrderedQueue::Slice& slice) {
  const Assembly fresh = queue.begin(number, slice);
  REQUIRE(fresh.verdict == Verdict::parked);
  Assembly& stored = queue.assemblies.create(fresh);
  queue.sequences.park(stored, queue.packet(number, 0, slice),
                       OrderedQueue::request(number, slice));
  return stored;
}

TEST_CASE("sequences: a parked slice that is withdrawn leaves the others in their order") {
  for (uint32_t gone = 2; gone <= 4; ++gone) {
    OrderedQueue queue;
    queue.begin(0, {.order = Order::relaxed});
    // Slice 1 is missing.
    for (const uint32_t number : {3u, 2u, 4u}) park(queue, number, {.packets = 2});
    CHECK(queue.sequences.parked() == 3);
    CHECK(queue.peers.at(sender).parked == 6);
    Assembly* const withdrawn = queue.sequences.find(queue.record, queue.record.unwrap(gone));
    REQUIRE(withdrawn != nullptr);
    queue.sequences.leave(*withdrawn);
    queue.assemblies.erase(*withdrawn);
    CHECK(queue.peers.at(sender).parked == 4);
    CHECK(queue.sequences.find(queue.record, queue.record.unwrap(gone)) == nullptr);
    CHECK(queue.sequences.next(queue.record.context) == nullptr);
    for (const uint32_t number : {0u, 1u, gone}) {
      queue.sequences.pass(queue.record, queue.record.unwrap(number));
    }
    for (uint32_t number = 2; number <= 4; ++number) {
      if (number == gone) continue;
      Assembly* const next = queue.sequences.next(queue.record.context);
      REQUIRE(next != nullptr);
      CHECK(next->slice == number);
      queue.sequences.leave(*next);
      queue.sequences.pass(queue.record, next->number);
      queue.assemblies.erase(*next);
    }
    queue.require_empty();
  }
}

TEST_CASE("sequences: a slice without room, and a read, are to be sent again") {
  OrderedQueue queue;
  queue.begin(0, {.order = Order::relaxed});
  CHECK(queue.begin(9, {.opcode = TaOpcode::read}).verdict == Verdict::not_ready);
  const uint32_t share = Parking::share(packet_bytes);
  REQUIRE(2 * share < room);
  // Each slice may have 64 packets: 64 KiB.
  uint32_t number = 2;
  for (; (number - 1) * 64 <= share; ++number) park(queue, number, {.packets = 64});
  CHECK(queue.peers.at(sender).parked == share);
  CHECK(queue.begin(number, {.packets = 1}).verdict == Verdict::not_ready);
  CHECK(queue.peers.at(sender).parked == share);
  Assembly& first = *queue.sequences.find(queue.record, queue.record.unwrap(2));
  queue.sequences.leave(first);
  queue.assemblies.erase(first);
  CHECK(queue.begin(number + 1, {.packets = 64}).verdict == Verdict::parked);
}

TEST_CASE("sequences: a message has room for the longest one until its last packet arrives") {
  OrderedQueue queue;
  queue.begin(0, {.order = Order::relaxed});
  const OrderedQueue::Slice slice{.packets = 2, .opcode = TaOpcode::send};
  Assembly& message = park(queue, 2, slice);
  CHECK(queue.peers.at(sender).parked == max_send_bytes / packet_bytes);
  ParsedRequest last = OrderedQueue::request(2, slice);
  last.headers.offset.kib = 1;
  const std::array<std::byte, packet_bytes> data{};
  last.data = data;
  queue.sequences.keep(message, queue.packet(2, 1, slice), last);
  CHECK(message.needed == 2);
  CHECK(queue.peers.at(sender).parked == 2);
  queue.sequences.leave(message);
  queue.assemblies.erase(message);
  queue.require_empty();
}

TEST_CASE("sequences: a peer leaves as many contexts to others as it has") {
  jetty::PeerStates peers(2);
  Assemblies assemblies(4, peers);
  Sequences sequences(4, 4, peers, assemblies);
  std::vector<ExecutionRecord> records(4, ExecutionRecord(0));
  const auto asks = [&](ExecutionRecord* record, uint32_t index, const Btah& request) {
    Assembly one{.peer = {.index = index, .generation = 1}};
    return sequences.prepare(one, record, request) ? Verdict::run : one.verdict;
  };
  CHECK(asks(&records[0], 0, {.in_context = true}) == Verdict::no_context);
  CHECK(asks(nullptr, 0, {.in_context = true}) == Verdict::no_context);
  CHECK(asks(nullptr, 0, {.allocate = true}) == Verdict::no_room);
  CHECK(asks(&records[0], 0, {}) == Verdict::run);
  CHECK(records[0].context == Sequences::none);
  for (int i = 0; i < 2; ++i) CHECK(asks(&records[0], 0, {.allocate = true}) == Verdict::run);
  CHECK(asks(&records[0], 0, {.in_context = true}) == Verdict::run);
  CHECK(asks(&records[1], 0, {.allocate = true}) == Verdict::run);
  CHECK(asks(&records[2], 0, {.allocate = true}) == Verdict::no_room);
  CHECK(asks(&records[3], 1, {.allocate = true}) == Verdict::run);
  CHECK(peers.at({.index = 0, .generation = 1}).contexts == 2);
  sequences.forget(records[0], peers.at({.index = 0, .generation = 1}));
  CHECK(records[0].context == Sequences::none);
  CHECK(asks(&records[2], 0, {.allocate = true}) == Verdict::run);
}

}  // namespace
}  // namespace urma::test
