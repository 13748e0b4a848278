// SPDX-License-Identifier: Apache-2.0
#include "jetty/atomics.h"

#include <array>
#include <vector>

#include "jetty/queues.h"
#include "jetty/target/fetched_values.h"
#include "tests/catch.h"
#include "tests/unit/random_headers.h"
#include "urma/core/atomic_works.h"

namespace urma::test {
namespace {

using jetty::AtomicCall;

// The model: the result of each atomic, with arithmetic on integers of unlimited width.
struct WordModel {
  uint32_t bytes;
  uint64_t mask() const { return bytes == 8 ? UINT64_MAX : (uint64_t{1} << 8 * bytes) - 1; }
  int64_t as_signed(uint64_t word) const {
    const uint64_t sign = uint64_t{1} << (8 * bytes - 1);
    return static_cast<int64_t>((word & sign) != 0 ? word | ~mask() : word & mask());
  }
  uint64_t updated(Update update, uint64_t word, uint64_t operand) const {
    const bool greater = as_signed(word) > as_signed(operand);
    switch (update) {
      case Update::add:
        return word + operand;
      case Update::clear:
        return word & ~operand;
      case Update::exclusive_or:
        return word ^ operand;
      case Update::set:
        return word | operand;
      case Update::signed_max:
        return greater ? word : operand;
      case Update::signed_min:
        return greater ? operand : word;
      case Update::unsigned_max:
        return word > (operand & mask()) ? word : operand;
      case Update::unsigned_min:
        return word > (operand & mask()) ? operand : word;
    }
    return 0;
  }
  uint64_t after(const AtomicCall& call, uint64_t word) const {
    const uint64_t operand = call.operand;
    switch (call.what) {
      case Atomic::compare_swap:
        return word == (call.expected & mask()) ? operand : word;
      case Atomic::swap:
        return operand;
      case Atomic::store:
      case Atomic::load:
        return updated(call.update, word, operand);
      case Atomic::fetch_add:
        return word + operand;
      case Atomic::fetch_sub:
        return word - operand;
      case Atomic::fetch_and:
        return word & operand;
      case Atomic::fetch_or:
        return word | operand;
      case Atomic::fetch_xor:
        return word ^ operand;
    }
    return 0;
  }
};

template <class Each>
void for_all_atomics(Each&& each) {
  for (auto what = first_atomic; what <= last_atomic;
       what = static_cast<Atomic>(static_cast<uint8_t>(what) + 1)) {
    for (auto update = Update::add; update <= last_update;
         update = static_cast<Update>(static_cast<uint8_t>(update) + 1)) {
      if (what != Atomic::store && what != Atomic::load && update != Update::add) continue;
      each(what, update);
    }
  }
}

TEST_CASE("each atomic of each width changes its word as the model says, and no other bytes") {
  Prng prng(1);
  for_all_atomics([&](Atomic what, Update update) {
    for (const uint32_t bytes : {1u, 2u, 4u, 8u}) {
      const WordModel model{bytes};
      for (int round = 0; round < 200; ++round) {
        alignas(8) std::array<std::byte, 24> memory;
        memory.fill(std::byte{0xa5});
        const std::span<std::byte> word = std::span(memory).subspan(8, bytes);
        // Values at which signs and carries change are more frequent than random values would make
        // them.
        const auto some = [&]() -> uint64_t {
          const uint64_t edges[] = {0, 1, UINT64_MAX, model.mask() / 2, model.mask() / 2 + 1};
          return coin(prng) ? edges[prng.below(5)] : random64(prng);
        };
        const uint64_t before = some() & model.mask();
        AtomicCall call{.what = what,
                        .update = update,
                        .bytes = bytes,
                        .operand = some(),
                        .expected = coin(prng) ? before : some()};
        std::memcpy(word.data(), &before, bytes);
        REQUIRE(jetty::execute(call, word.data()) == before);
        uint64_t after = 0;
        std::memcpy(&after, word.data(), bytes);
        INFO("atomic " << int(what) << " update " << int(update) << " bytes " << bytes);
        REQUIRE(after == (model.after(call, before) & model.mask()));
        for (size_t i = 0; i < memory.size(); ++i) {
          if (i < 8 || i >= 8 + bytes) REQUIRE(memory[i] == std::byte{0xa5});
        }
      }
    }
  });
}

TEST_CASE("values are little endian on the wire") {
  std::array<std::byte, 8> wire{};
  jetty::put_little(0x0102'0304'0506'0708, std::span(wire).first(4));
  CHECK(wire[0] == std::byte{8});
  CHECK(wire[3] == std::byte{5});
  CHECK(wire[4] == std::byte{0});
  CHECK(jetty::get_little(std::span(wire).first(4)) == 0x0506'0708);
  CHECK(jetty::get_little(std::span(wire).first(0)) == 0);
}

TEST_CASE("the results of exactly the last R atomics of a queue are kept") {
  jetty::AtomicResults results;
  const auto tassn = [](uint32_t number) { return Tassn::first(0) + number; };
  CHECK_FALSE(results.find(tassn(0)));
  constexpr uint32_t kept = jetty::AtomicResults::kept;
  // The numbers wrap meanwhile: those of the counter, and TASSNs.
  for (uint32_t i = 0; i < 70'000; ++i) {
    results.keep(tassn(i * 3), i, 1 + i % 8);
    if (i % 1000 != 0 || i < kept) continue;
    for (uint32_t back = 0; back < kept; ++back) {
      const auto result = results.find(tassn((i - back) * 3));
      REQUIRE(result);
      REQUIRE(result->fetched == i - back);
      REQUIRE(result->bytes == 1 + (i - back) % 8);
    }
    REQUIRE_FALSE(results.find(tassn((i - kept) * 3)));
    // A later TASSN with the same wire bits is not found.
    REQUIRE_FALSE(results.find(tassn(i * 3 + 65'536)));
  }
}

TEST_CASE("a queue's fetched values are kept until its record ends, and then forgotten") {
  jetty::FetchedValues values(1);
  jetty::ExecutionRecord one{0};
  jetty::ExecutionRecord other{0};
  const Tassn tassn = Tassn::first(0);
  CHECK_FALSE(values.find(one, tassn));
  values.keep(one, tassn, {.fetched = 7, .bytes = 8});
  values.keep(one, tassn + 1, {.fetched = 9, .bytes = 4});
  REQUIRE(values.find(one, tassn));
  CHECK(values.find(one, tassn)->fetched == 7);
  CHECK(values.find(one, tassn + 1)->bytes == 4);
  CHECK_FALSE(values.find(other, tassn));
  values.forget(other);
  CHECK(values.find(one, tassn));
  values.forget(one);
  CHECK_FALSE(values.find(one, tassn));
  values.keep(other, tassn + 2, {.fetched = 1, .bytes = 8});
  CHECK(values.find(other, tassn + 2));
  CHECK_FALSE(values.find(other, tassn));
}

// Returns the status with which an invalid work is refused when it is posted.
Status verdict(const Work& work) {
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 64);
  REQUIRE(queues->post({&work, 1}) == 1);
  return queues->jfs().berth(queues->jfs().take_posted()).verdict;
}

TEST_CASE("an invalid atomic is refused when it is posted, with the status that says why") {
  RemoteSegment segment{.peer = {.index = 1, .generation = 1},
                        .address = 0x10000,
                        .bytes = 64,
                        .rights = Rights::atomic};
  const auto with = [&](auto change) {
    RemoteSegment other = segment;
    change(other);
    return other;
  };
  CHECK(verdict(fetch_add(segment, 0, 1)) == Status::ok);
  CHECK(verdict(fetch_add<uint8_t>(segment, 63, 1)) == Status::ok);
  CHECK(verdict(compare_swap<int16_t>(segment, 62, -1, 1)) == Status::ok);
  CHECK(verdict(atomic_load<int32_t>(segment, 60, Update::signed_min, -5)) == Status::ok);
  CHECK(verdict(atomic_store(segment, 56, Update::set, 1)) == Status::ok);

  for (const uint64_t offset : {1, 4, 7}) {
    CHECK(verdict(fetch_add(segment, offset, 1)) == Status::bad_work);
  }
  CHECK(verdict(fetch_or<uint16_t>(segment, 3, 1)) == Status::bad_work);
  CHECK(verdict(swap(with([](auto& s) { s.address += 4; }), 0, 1)) == Status::bad_work);
  CHECK(verdict(swap(with([](auto& s) { s.address += 4; }), 4, 1)) == Status::ok);
  CHECK(verdict(swap(RemoteSegment{}, 0, 1)) == Status::bad_work);
  for (const size_t bytes : {16, 32, 64}) {
    Work wide = fetch_add(segment, 0, 1);
    wide.buffer.bytes = bytes;
    CHECK(verdict(wide) == Status::unsupported);
  }
  for (const size_t bytes : {0, 3, 5, 128}) {
    Work odd = fetch_add(segment, 0, 1);
    odd.buffer.bytes = bytes;
    CHECK(verdict(odd) == Status::bad_work);
  }
  Work none = fetch_add(segment, 0, 1);
  none.atomic = Atomic{};
  CHECK(verdict(none) == Status::bad_work);
  none = atomic_load(segment, 0, static_cast<Update>(8), 1);
  CHECK(verdict(none) == Status::bad_work);

  CHECK(verdict(fetch_add(segment, 64, 1)) == Status::remote_access);
  CHECK(verdict(fetch_add(segment, UINT64_MAX - 7, 1)) == Status::remote_access);
  CHECK(verdict(fetch_add(with([](auto& s) { s.rights = Rights::read | Rights::write; }), 0, 1)) ==
        Status::remote_access);
  CHECK(verdict(fetch_add(with([](auto& s) { s.atomics = AtomicDomain::device; }), 0, 1)) ==
        Status::unsupported);
  CHECK(verdict(fetch_add(with([](auto& s) { s.atomics = AtomicDomain::engine; }), 0, 1)) ==
        Status::ok);

  const RemoteJetty jetty{.peer = segment.peer, .id = JettyId{1}};
  CHECK(verdict(fetch_add(segment, 0, 1).to(jetty).immediate(1)) == Status::bad_work);
  CHECK(verdict(fetch_add(segment, 0, 1).notify(segment, 0, 1)) == Status::bad_work);
  CHECK(verdict(fetch_add(segment, 0, 1).inline_data()) == Status::bad_work);
}

}  // namespace
}  // namespace urma::test
