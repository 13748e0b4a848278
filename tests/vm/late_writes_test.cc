// SPDX-License-Identifier: Apache-2.0
// The kernel's adapter moves data while the owner of the memory takes it back: nothing is written
// after that.

#include "base/clock.h"
#include "base/prng.h"
#include "tests/api/helpers.h"
#include "tests/fresh_seed.h"

namespace urma::test {
namespace {

constexpr int rounds = 1000;
constexpr size_t bytes = 64 * 1024;
constexpr size_t works = 4;

TEST_CASE("an adapter writes nothing after unregister, in a thousand rounds") {
  Side owner = Side::open("verbs:rxe0?service=5011&rc=always", {.threads = Threads::served});
  Side user = Side::open("verbs:rxe0?service=5012&rc=always",
                         {.threads = Threads::inlined, .operation_timeout = 10s});
  const std::span<std::byte> source = user.segment.bytes().first(bytes);
  std::vector<std::byte> memory(bytes);
  Prng prng(fresh_seed());
  const auto carried = [&] { return user.device.stats().value().carried; };
  uint64_t taken_back = 0;  // while adapters were writing
  for (int round = 0; round < rounds; ++round) {
    Segment target = owner.device.register_memory(memory).value();
    const RemoteSegment there = user.device.import(target.descriptor()).value().segment;
    std::ranges::fill(source, std::byte{1});
    const uint64_t before = carried();
    const Time until = read_clock() + 10s;
    while (carried() == before && read_clock() < until) {
      REQUIRE(run_one(user.jetty, write(source.first(8), there)).ok());
    }
    REQUIRE(carried() > before);
    for (size_t i = 0; i < works; ++i) REQUIRE(user.jetty.post(write(source, there)) == 1);
    std::array<Completion, works> done;
    size_t ended = 0;
    for (uint64_t n = prng.below(4); n > 0; --n) ended += user.jetty.poll(done);
    REQUIRE(target.unregister().ok());
    std::ranges::fill(memory, std::byte{2});
    for (const Completion& one : collect(user.jetty, works - ended, 20s)) {
      CHECK((one.ok() || one.status == Status::remote_access || one.status == Status::unknown));
      ++ended;
      taken_back += !one.ok();
    }
    REQUIRE(ended == works);
    REQUIRE(std::ranges::count(memory, std::byte{2}) == bytes);
  }
  CHECK(taken_back > rounds / 2);
}

}  // namespace
}  // namespace urma::test
