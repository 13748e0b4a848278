// SPDX-License-Identifier: Apache-2.0
// The fast path for the packets of a long write (Target::handle_next), beside the way of all other
// packets: it takes only packets that follow the one before, and both have the same effects.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/unit/engine/lone_transactions.h"
#include "wire/ta_chain.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t full_packet = 1024;  // as OnePeer's channel has it

// A target with a segment, and a slice of several packets that is written to it.
struct LongWrite {
  explicit LongWrite(uint32_t length, bool guarded = false) : memory(length), data(length) {
    Prng prng(length);
    for (std::byte& byte : data) byte = static_cast<std::byte>(prng.below(256));
    lone.connect(now);
    if (guarded) REQUIRE(lone.segments.guard().open(memory));
    REQUIRE(lone.segments.add({.base = memory.data(),
                               .bytes = memory.size(),
                               .rights = Rights::write,
                               .address = 0x1000,
                               .guarded = guarded},
                              TokenPolicy::plain_text, made) == memseg::SegmentTable::Added::added);
    headers.base = {.opcode = static_cast<uint8_t>(TaOpcode::write),
                    .token_present = true,
                    .tassn = 5,
                    .rc_id = 3};
    headers.memory = {.address = 0x1000, .token_id = number(made.token.id), .length = length};
    headers.token.token = number(made.token.value);
  }
  uint32_t packets() const { return transport::packets_of(headers.memory.length, full_packet); }
  // Returns packet number `index`, with these headers but for the address.
  std::vector<std::byte> packet(uint32_t index) const {
    TaRequest request = headers;
    request.memory.address += index * full_packet;
    std::vector<std::byte> out(TaRequest::max_size);
    out.resize(request.emit(out));
    const auto begin = data.begin() + index * full_packet;
    const auto bytes = std::min<size_t>(full_packet, data.size() - index * full_packet);
    out.insert(out.end(), begin, begin + static_cast<ptrdiff_t>(bytes));
    return out;
  }
  transport::Received received(std::span<const std::byte> packet, bool last) const {
    return {.peer = OnePeer::id,
            .channel = 1,
            .slice = slice,
            .last = last,
            .in_order = in_order,
            .head = packet,
            .bytes = packet};
  }
  // Returns whether the fast path has taken the packet.
  bool offer(std::span<const std::byte> packet, bool last) {
    return lone.transactions.accept_next(received(packet, last));
  }
  void accept(std::span<const std::byte> packet, bool last) {
    const transport::Received one = received(packet, last);
    REQUIRE(lone.transactions.admits(one));
    lone.transactions.accept(one, now);
  }
  // Delivers packet number `index`, and returns whether the fast path has taken it.
  bool deliver(uint32_t index, bool fast = true) {
    const auto one = packet(index);
    const bool last = index + 1 == packets();
    if (fast && offer(one, last)) return true;
    accept(one, last);
    return false;
  }
  const jetty::TargetCounters& counters() { return lone.transactions.target().counters(); }

  std::vector<std::byte> memory;
  std::vector<std::byte> data;
  LoneTransactions lone;
  memseg::SegmentTable::Made made;
  TaRequest headers;
  uint32_t slice = 7;
  bool in_order = false;  // whether the channel says so
  Time now{1s};
};

TEST_CASE("long writes: packets in order take the fast path, but the first and the last one") {
  for (const uint32_t length : {2 * full_packet, 5 * full_packet - 1, 64u * 1024}) {
    LongWrite write(length);
    for (uint32_t i = 0; i < write.packets(); ++i) {
      CHECK(write.counters().executed == 0);
      CHECK(write.deliver(i) == (i > 0 && i + 1 < write.packets()));
    }
    CHECK(write.memory == write.data);
    CHECK(write.counters().executed == 1);
    CHECK(write.counters().refused == 0);
    // The slice has ended: its packets begin another one.
    CHECK_FALSE(write.deliver(1));
  }
}

TEST_CASE("long writes: in any order, both ways place each byte and execute the slice once") {
  Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    LongWrite fast(7 * full_packet + 9);
    LongWrite slow(7 * full_packet + 9);
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < fast.packets(); ++i) order.push_back(i);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
    for (size_t i = 0; i < order.size(); ++i) {
      const bool follows = i > 0 && order[i] == order[i - 1] + 1;
      const bool last = order[i] + 1 == order.size() || i + 1 == order.size();
      REQUIRE(fast.deliver(order[i]) == (follows && !last));
      slow.deliver(order[i], false);
      REQUIRE(fast.memory == slow.memory);
      REQUIRE(fast.counters().executed == slow.counters().executed);
    }
    REQUIRE(fast.memory == fast.data);
    REQUIRE(fast.counters().executed == 1);
  }
}

TEST_CASE("long writes: a packet that is not the next one of its slice takes the other way") {
  LongWrite write(4 * full_packet + 100);
  write.deliver(0);
  const auto next = write.packet(1);
  for (size_t byte = 0; byte < WriteWords::size; ++byte) {
    auto spoilt = next;
    spoilt[byte] ^= std::byte{1};
    CHECK_FALSE(write.offer(spoilt, false));
  }
  CHECK_FALSE(write.offer(std::span(next).first(next.size() - 1), false));
  CHECK_FALSE(write.offer(std::span(next).first(WriteWords::size - 1), false));
  CHECK_FALSE(write.offer(std::span(next).first(WriteWords::size + 100), false));
  CHECK_FALSE(write.offer(next, true));
  CHECK_FALSE(write.offer(write.packet(2), false));
  ++write.slice;
  CHECK_FALSE(write.offer(next, false));
  --write.slice;
  CHECK(std::all_of(write.memory.begin() + full_packet, write.memory.end(),
                    [](std::byte byte) { return byte == std::byte{}; }));
  for (uint32_t i = 1; i < write.packets(); ++i) {
    CHECK(write.deliver(i) == (i + 1 < write.packets()));
  }
  CHECK(write.memory == write.data);
}

TEST_CASE("long writes: a segment that is withdrawn meanwhile is not written any more") {
  LongWrite write(4 * full_packet);
  write.deliver(0);
  CHECK(write.deliver(1));
  write.lone.segments.release(write.lone.segments.withdraw(write.made.segment, false));
  CHECK_FALSE(write.deliver(2));
  CHECK_FALSE(write.deliver(3));
  CHECK(write.counters().executed == 0);
  CHECK(write.counters().refused == 1);
  CHECK(std::all_of(write.memory.begin() + 2 * full_packet, write.memory.end(),
                    [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("long writes: nothing is placed of a slice that ends behind its segment") {
  LongWrite write(4 * full_packet);
  write.in_order = true;  // so that the first packet shows where the slice begins
  write.headers.memory.address += full_packet;
  for (uint32_t i = 0; i < write.packets(); ++i) CHECK_FALSE(write.deliver(i));
  CHECK(write.counters().executed == 0);
  CHECK(write.counters().refused == 1);
  CHECK(std::ranges::count(write.memory, std::byte{}) == 4 * full_packet);
}

TEST_CASE("long writes: guarded memory, which may be unmapped, is written by the other way") {
  LongWrite write(4 * full_packet, true);
  for (uint32_t i = 0; i < write.packets(); ++i) CHECK_FALSE(write.deliver(i));
  CHECK(write.counters().executed == 1);
  CHECK(write.memory == write.data);
}

}  // namespace
}  // namespace urma::test
