#include "jetty/target/expected_queues.h"

#include <deque>
#include <map>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::ExecutionRecord;
using jetty::ExpectedQueues;

uint64_t base_of(uint32_t tassn, uint32_t rc_id) {
  return Btah{.token_present = true, .target_present = true, .tassn = tassn, .rc_id = rc_id}.word();
}

TEST_CASE("of a queue whose message was executed, exactly the next message is expected") {
  ExpectedQueues expected;
  constexpr PeerId peer{.index = 3, .generation = 5};
  constexpr uint32_t rc_id = 0xabcde;
  ExecutionRecord record(0xfffe);
  CHECK(expected.find(peer, base_of(0xffff, rc_id)) == nullptr);
  expected.expect(peer, rc_id, record);

  SECTION("whatever its opcode, order and event") {
    for (const TaOpcode opcode :
         {TaOpcode::send, TaOpcode::send_immediate, TaOpcode::write_immediate}) {
      const Btah base{.opcode = static_cast<uint8_t>(opcode),
                      .token_present = true,
                      .target_present = true,
                      .tassn = 0xffff,
                      .order = Order::strong,
                      .solicited = true,
                      .rc_id = rc_id};
      ExpectedQueues::Queue* const queue = expected.find(peer, base.word());
      REQUIRE(queue != nullptr);
      CHECK(queue->record == &record);
    }
  }
  SECTION("and no other header") {
    CHECK(expected.find({.index = 3, .generation = 6}, base_of(0xffff, rc_id)) == nullptr);
    CHECK(expected.find({.index = 4, .generation = 5}, base_of(0xffff, rc_id)) == nullptr);
    const uint64_t right = base_of(0xffff, rc_id);
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t other = right ^ uint64_t { 1 } << bit;
      CHECK((expected.find(peer, other) != nullptr) ==
            ((other & Btah::fixed_bits) == (right & Btah::fixed_bits)));
    }
  }
  SECTION("then the one after it, also when numbers wrap around") {
    ExpectedQueues::Queue* const queue = expected.find(peer, base_of(0xffff, rc_id));
    REQUIRE(queue != nullptr);
    ExpectedQueues::advance(*queue);
    CHECK(record.mark(record.newest()) == ExecutionRecord::Mark::executed);
    CHECK(expected.find(peer, base_of(0xffff, rc_id)) == nullptr);
    CHECK(expected.find(peer, base_of(0, rc_id)) == queue);
  }
  SECTION("but none once another slice of the queue was seen first") {
    REQUIRE(record.see(record.newest() + 1));
    CHECK(expected.find(peer, base_of(0xffff, rc_id)) == nullptr);
    CHECK(expected.find(peer, base_of(0, rc_id)) == nullptr);
  }
}

// Beside a map of all queues: a queue may be forgotten, but what is found is right.
TEST_CASE("what is expected of many queues is the next message of one of them") {
  Prng prng(1);
  ExpectedQueues expected;
  std::deque<ExecutionRecord> records;
  std::map<std::pair<uint32_t, uint32_t>, ExecutionRecord*> all;
  uint64_t found = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const PeerId peer{.index = static_cast<uint32_t>(prng.below(3)), .generation = 1};
    const auto rc_id = static_cast<uint32_t>(prng.below(40));
    ExecutionRecord*& record = all[{peer.index, rc_id}];
    if (record == nullptr) record = &records.emplace_back(static_cast<uint32_t>(prng.next()));
    const uint32_t tassn = (record->newest() + prng.between(0, 2)).wire();
    if (ExpectedQueues::Queue* const queue = expected.find(peer, base_of(tassn, rc_id))) {
      REQUIRE(queue->record == record);
      REQUIRE(tassn == (record->newest() + 1).wire());
      ExpectedQueues::advance(*queue);
      ++found;
    } else if (prng.below(2) == 0) {
      REQUIRE(record->see(record->newest() + 1));
      expected.expect(peer, rc_id, *record);
    }
  }
  CHECK(found > 500);
}

}  // namespace
}  // namespace urma::test
