// SPDX-License-Identifier: Apache-2.0
// Tests segments, their tokens, and the fences that end accesses, on a medium of its own: which
// frames, works and peers a fence waits for, and for how long.

#include "engine/registrations.h"

#include <map>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/unit/engine/lone_transactions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::Fills;
using engine::Registrations;
using Added = memseg::SegmentTable::Added;
using Lease = Registrations::Lease;

// A medium that records, for each segment, what its owner has granted. The test sets whether a peer
// holds the segment.
class RecordedMemory final : public drivers::SegmentMemory {
 public:
  struct Record {
    bool open = false;
    Grant grant;
    bool held = false;
    bool loose = false;
    bool moved = false;
  };

  Taken take(uint64_t, Lease&) override { return Taken::no_room; }
  bool prepare(const Lease&) override { return false; }
  void grant(const Lease& lease, const Grant& grant) override {
    records[lease.number].open = true;
    records[lease.number].grant = grant;
  }
  void revoke(const Lease& lease) override { records[lease.number].open = false; }
  void revoke_all() override {
    for (auto& [number, record] : records) record.open = false;
  }
  bool held(const Lease& lease) override { return records[lease.number].held; }
  bool move(const Lease& lease) override { return records[lease.number].moved = true; }
  bool loose(const Lease& lease) const override { return records.at(lease.number).loose; }
  bool moved(const Lease& lease) const override { return records.at(lease.number).moved; }
  bool restore(const Lease&) override { return true; }
  void empty(const Lease&) override {}
  void give_back(const Lease&) override {}
  size_t quarantined(std::span<Quarantined>) override { return 0; }
  void set_judge(drivers::TokenJudge*) override {}

  std::map<uint32_t, Record> records;
};

// A device that records what it may no longer read.
class RecordedReads final : public drivers::DeviceReads {
 public:
  bool map(std::span<const std::byte>, Rights) override { return true; }
  void grant(std::span<const std::byte>, Rights) override {}
  void revoke(std::span<const std::byte> memory, Rights) override {
    revoked.push_back(memory.data());
  }
  void unmap(std::span<const std::byte>, Rights) override {}

  std::vector<const std::byte*> revoked;
};

constexpr uint64_t segment_bytes = 64;

// A device whose peer never answers, with segments of 64 bytes.
struct Owner {
  memseg::SegmentTable::Segment at(uint32_t index, bool mapped = true) {
    return {.base = bytes.data() + index * segment_bytes,
            .bytes = segment_bytes,
            .rights = Rights::read | Rights::write,
            .lease = mapped ? index : memseg::SegmentTable::none};
  }
  memseg::SegmentTable::Made add(uint32_t index, Handle with = {}) {
    memseg::SegmentTable::Made made;
    REQUIRE(registrations.add(at(index), TokenPolicy::plain_text, with, made) == Added::added);
    return made;
  }
  bool accepts(const memseg::SegmentTable::Made& made, TokenValue token, uint32_t index) {
    return lone.segments.check(made.token.id, token, at(index).address, 8, Rights::write) !=
           nullptr;
  }
  // Makes a Jetty. Works that it posts stay outstanding, because there is no channel to their peer.
  std::shared_ptr<jetty::Queues> make_jetty() {
    auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
    REQUIRE(lone.transactions.jetties().create(first_dynamic_jetty, {}, {queues, {}}));
    return queues;
  }
  std::span<std::byte> memory_of(uint32_t index) {
    return std::span(bytes).subspan(index * segment_bytes, segment_bytes);
  }

  Time now{1h};
  std::vector<std::byte> bytes = std::vector<std::byte>(16 * segment_bytes);
  RecordedMemory memory;
  RecordedReads reads;
  Fills fills;
  LoneTransactions lone;
  Registrations registrations{lone.segments, {&memory, &reads}, lone.transactions, fills, nullptr};
};

TEST_CASE(
    "a withdrawn segment is refused immediately, and is done when earlier fills have settled") {
  Owner owner;
  const auto made = owner.add(0);
  CHECK(owner.accepts(made, made.token.value, 0));
  CHECK(owner.memory.records[0].open);
  owner.fills.add(1);
  Registrations::Withdrawal what{.segment = made.segment, .own = owner.at(0)};
  CHECK_FALSE(owner.registrations.withdraw(what, owner.now));
  CHECK_FALSE(owner.accepts(made, made.token.value, 0));
  CHECK_FALSE(owner.memory.records[0].open);
  owner.fills.add(1);  // after the fence: it cannot name the memory
  CHECK_FALSE(owner.registrations.withdraw(what, owner.now + 1h));
  owner.fills.settle(1);
  CHECK(owner.registrations.withdraw(what, owner.now + 1h));
  CHECK(what.fenced);
  CHECK(owner.lone.segments.size() == 0);
}

TEST_CASE("the device may not begin to read memory that is being withdrawn") {
  Owner owner;
  const auto made = owner.add(0);
  owner.add(1, made.segment);
  owner.add(2);
  owner.fills.add(1);  // may be read until it has settled
  Registrations::Withdrawal what{.segment = made.segment, .all = true, .own = owner.at(0)};
  CHECK_FALSE(owner.registrations.withdraw(what, owner.now));
  const std::set<const std::byte*> both{owner.at(0).base, owner.at(1).base};
  CHECK(std::set(owner.reads.revoked.begin(), owner.reads.revoked.end()) == both);
  owner.fills.settle(1);
  CHECK(owner.registrations.withdraw(what, owner.now));
  CHECK(owner.reads.revoked.size() == 2);
}

TEST_CASE("works that use a withdrawn segment end, whatever their peer does, and no others") {
  Owner owner;
  const auto made = owner.add(0);
  const auto queues = owner.make_jetty();
  post_write(*queues, owner.memory_of(0), 1);
  post_write(*queues, owner.memory_of(1), 2);
  Registrations::Withdrawal what{.segment = made.segment, .own = owner.at(0)};
  CHECK(owner.registrations.withdraw(what, owner.now));
  const auto ended = polled(*queues);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].tag == 1);
  CHECK(ended[0].status == Status::flushed);
}

TEST_CASE("receives whose buffers lie in a withdrawn segment end, and no others") {
  Owner owner;
  const auto made = owner.add(0);
  const auto queues = owner.make_jetty();
  for (const uint64_t index : {0, 1}) {
    const Buffer buffer{owner.bytes.data() + index * segment_bytes + 8, 16};
    REQUIRE(queues->receive({&buffer, 1}, index + 1) == 1);
  }
  Registrations::Withdrawal what{.segment = made.segment, .own = owner.at(0)};
  CHECK(owner.registrations.withdraw(what, owner.now));
  const auto ended = polled(*queues);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].tag == 1);
  CHECK(ended[0].status == Status::flushed);
}

TEST_CASE("works and receives end only where no other segment has their memory") {
  Owner owner;
  Registrations registrations(owner.lone.segments, {&owner.memory, nullptr},
                              owner.lone.transactions, owner.fills, nullptr);
  const auto add = [&](uint32_t index, uint32_t count) {
    auto segment = owner.at(index, false);
    segment.bytes = count * segment_bytes;
    memseg::SegmentTable::Made made;
    REQUIRE(registrations.add(segment, TokenPolicy::plain_text, {}, made) == Added::added);
    return Registrations::Withdrawal{.segment = made.segment, .own = segment};
  };
  Registrations::Withdrawal wide = add(0, 4);
  add(1, 1);
  Registrations::Withdrawal last = add(3, 2);
  const auto queues = owner.make_jetty();
  for (uint32_t i = 0; i < 4; ++i) {
    post_write(*queues, owner.memory_of(i), i);
    const Buffer buffer{owner.memory_of(i).data(), 8};
    REQUIRE(queues->receive({&buffer, 1}, 10 + i) == 1);
  }
  const auto ended = [&] {
    std::vector<uint64_t> tags;
    for (const Completion& completion : polled(*queues)) {
      CHECK(completion.status == Status::flushed);
      tags.push_back(completion.tag);
    }
    std::ranges::sort(tags);
    return tags;
  };
  CHECK(registrations.withdraw(wide, owner.now));
  CHECK(ended() == std::vector<uint64_t>{0, 2, 10, 12});
  CHECK(registrations.withdraw(last, owner.now));
  CHECK(ended() == std::vector<uint64_t>{3, 13});
}

TEST_CASE("a withdrawal waits half a millisecond for a peer that holds the memory, then moves it") {
  Owner owner;
  const auto made = owner.add(0);
  owner.memory.records[0].held = true;
  Registrations::Withdrawal what{.segment = made.segment, .own = owner.at(0)};
  CHECK_FALSE(owner.registrations.withdraw(what, owner.now));
  CHECK_FALSE(owner.registrations.withdraw(what, owner.now + 500us));

  SECTION("released in time") {
    owner.memory.records[0].held = false;
    CHECK(owner.registrations.withdraw(what, owner.now + 600us));
    CHECK_FALSE(what.held);
    CHECK(owner.registrations.not_fenced() == 0);
  }
  SECTION("moved") {
    REQUIRE(owner.registrations.withdraw(what, owner.now + 501us));
    REQUIRE(what.held);
    CHECK(what.held->number == 0);
    what.fenced = owner.memory.move(*what.held);
    CHECK(owner.registrations.withdraw(what, owner.now + 600us));
    CHECK_FALSE(what.held);
    CHECK(owner.registrations.not_fenced() == 0);
  }
  SECTION("not movable") {
    REQUIRE(owner.registrations.withdraw(what, owner.now + 501us));
    what.fenced = false;
    CHECK(owner.registrations.withdraw(what, owner.now + 600us));
    CHECK_FALSE(what.held);
    CHECK(owner.registrations.not_fenced() == 1);
  }
  CHECK(owner.lone.segments.size() == 0);
}

TEST_CASE("memory that peers may use without holding it is moved without waiting") {
  Owner owner;
  const auto made = owner.add(0);
  owner.memory.records[0].loose = true;
  Registrations::Withdrawal what{.segment = made.segment, .own = owner.at(0)};
  CHECK(owner.registrations.withdraw(what, owner.now));
  CHECK(what.held);
}

TEST_CASE("all segments of a TokenID are withdrawn together, without looking at their holders") {
  Owner owner;
  const auto made = owner.add(0);
  owner.add(1, made.segment);
  owner.add(2);
  for (const uint32_t i : {0, 1, 2}) owner.memory.records[i].held = true;
  Registrations::Withdrawal what{.segment = made.segment, .all = true, .own = owner.at(0)};
  CHECK(owner.registrations.withdraw(what, owner.now));
  CHECK_FALSE(what.held);
  CHECK_FALSE(owner.memory.records[0].open);
  CHECK_FALSE(owner.memory.records[1].open);
  CHECK(owner.memory.records[2].open);
  CHECK(owner.lone.segments.size() == 1);
}

TEST_CASE("an older token is refused immediately, and retired when fills and peers have ended") {
  Owner owner;
  const auto made = owner.add(0);
  owner.add(1, made.segment);
  REQUIRE(owner.registrations.rotate(made.segment));
  CHECK_FALSE(owner.registrations.rotate(made.segment));
  const auto tokens = owner.lone.segments.token(made.segment);
  CHECK(tokens.older == made.token.value);
  for (const uint32_t i : {0, 1}) CHECK(owner.memory.records[i].grant.older == tokens.older);

  owner.fills.add(1);
  owner.memory.records[1].held = true;
  Registrations::Retirement what{.segment = made.segment};
  CHECK_FALSE(owner.registrations.retire(what, owner.now));
  CHECK_FALSE(owner.accepts(made, tokens.older, 0));
  CHECK(owner.accepts(made, tokens.value, 0));
  for (const uint32_t i : {0, 1}) CHECK_FALSE(owner.memory.records[i].open);
  CHECK_FALSE(owner.registrations.retire(what, owner.now + 1h));  // the fill
  owner.fills.settle(1);
  CHECK_FALSE(owner.registrations.retire(what, owner.now + 1h));  // the peer, from now on
  CHECK_FALSE(owner.registrations.retire(what, owner.now + 1h + 20ms));

  const bool released = GENERATE(true, false);
  if (released) owner.memory.records[1].held = false;
  CHECK(owner.registrations.retire(what, owner.now + 1h + 21ms));
  CHECK(what.fenced == released);
  CHECK(owner.registrations.not_fenced() == (released ? 0 : 1));
  for (const uint32_t i : {0, 1}) {
    CHECK(owner.memory.records[i].open);
    CHECK(owner.memory.records[i].grant.token == tokens.value);
    CHECK(owner.memory.records[i].grant.older == tokens.value);
  }
}

TEST_CASE("after the end nothing is accessible, and nothing can be added") {
  Owner owner;
  const auto made = owner.add(0);
  owner.registrations.end();
  CHECK_FALSE(owner.accepts(made, made.token.value, 0));
  CHECK_FALSE(owner.memory.records[0].open);
  memseg::SegmentTable::Made more;
  CHECK(owner.registrations.add(owner.at(1), TokenPolicy::plain_text, {}, more) == Added::gone);
  CHECK_FALSE(owner.memory.records[1].open);
  // A retirement that was in progress opens nothing again.
  Registrations::Retirement what{.segment = made.segment};
  CHECK(owner.registrations.retire(what, owner.now));
  CHECK_FALSE(owner.memory.records[0].open);
}

// After any series of calls the medium grants access to exactly those segments, with the same
// tokens, that the table accepts.
TEST_CASE("the medium and the segment table never differ") {
  constexpr uint32_t segments = 8;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Prng prng(seed);
    Owner owner;
    std::map<uint32_t, memseg::SegmentTable::Made> live;
    for (int step = 0; step < 300; ++step) {
      const auto index = static_cast<uint32_t>(prng.below(segments));
      const uint64_t action = prng.below(4);
      if (live.count(index) == 0) {
        const bool joins = !live.empty() && action % 2 == 0;
        live[index] = owner.add(index, joins ? live.begin()->second.segment : Handle{});
      } else if (action == 0) {
        Registrations::Withdrawal what{.segment = live[index].segment, .own = owner.at(index)};
        REQUIRE(owner.registrations.withdraw(what, owner.now));
        live.erase(index);
      } else if (action == 1) {
        const TokenId id = live[index].token.id;
        Registrations::Withdrawal what{
            .segment = live[index].segment, .all = true, .own = owner.at(index)};
        REQUIRE(owner.registrations.withdraw(what, owner.now));
        std::erase_if(live, [&](const auto& one) { return one.second.token.id == id; });
      } else if (action == 2) {
        owner.registrations.rotate(live[index].segment);
      } else {
        Registrations::Retirement what{.segment = live[index].segment};
        REQUIRE(owner.registrations.retire(what, owner.now));
      }
      for (const auto& [number, record] : owner.memory.records) {
        REQUIRE(record.open == (live.count(number) > 0));
        if (!record.open) continue;
        const auto token = owner.lone.segments.token(live[number].segment);
        REQUIRE(record.grant.id == token.id);
        REQUIRE(record.grant.token == token.value);
        REQUIRE(record.grant.older == token.older);
        REQUIRE(owner.accepts(live[number], record.grant.older, number));
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
