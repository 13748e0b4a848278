// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/lane_calls.h"

#include <algorithm>
#include <array>
#include <optional>

#include "apps/common/failure.h"
#include "apps/urma_perf/responder.h"
#include "tests/catch.h"
#include "tests/drivers/window_file.h"

namespace urma::apps::perf {
namespace {

// Both sides of a case of a lane in one process, on one device.
struct LaneSides {
  explicit LaneSides(std::string_view test, uint64_t bytes, const NamedAtomic& kind = {})
      : window("lane-calls"),
        device(open(window.device("?size=64M")).value()),
        completions(device.jfc(16).value()),
        atomic(kind),
        what({.test = find_test(test), .bytes = bytes, .atomic = &atomic}),
        client(device, what, Place::client, std::array{&completions}),
        calls(client, 0, completions) {
    server.emplace(device, what, Place::server, std::array{&completions});
    client.meet(device, server->describe());
    server->meet(device, client.describe());
    REQUIRE(client.other().mapped());
  }

  // Runs a round as `CaseRun` does.
  Outcome round(uint64_t count) {
    Responder responder(*server, true);
    responder.begin(false);
    std::ranges::fill(client.ledger(), Side::never_written);
    if (what.test->atomics()) std::ranges::copy(server->landing(), client.landing().begin());
    if (spoil_before) server->slot(0, 0)[0] ^= std::byte{1};
    Outcome outcome;
    calls.run({.at = INT64_MAX, .count = count}, outcome);
    if (spoil_after) server->slot(0, 0)[0] ^= std::byte{1};
    std::ranges::copy(client.ledger(), server->ledger().begin());
    outcome.verdict.add(report_of(*server, std::span(&responder, 1)).verdict);
    return outcome;
  }

  test::WindowFile window;
  Device device;
  Jfc completions;
  const NamedAtomic atomic;
  const Case what;
  Side client;
  std::optional<Side> server;
  LaneCalls calls;
  bool spoil_before = false;
  bool spoil_after = false;
};

}  // namespace

TEST_CASE("each call of a lane is counted and timed, and its bytes are right") {
  for (const std::string_view test : {"lane_write_lat", "lane_read_lat"}) {
    for (const uint64_t bytes : {1, 8, 9, 64, 1000, 4096, 100'000}) {
      CAPTURE(test, bytes);
      LaneSides sides(test, bytes);
      for (const uint64_t count : {1, 63, 64, 65, 200}) {
        const Outcome outcome = sides.round(count);
        CHECK(outcome.messages == count);
        CHECK(outcome.times.count() == count);
        CHECK(outcome.verdict.wrong == 0);
        CHECK(outcome.within_calls > 0);
        CHECK(outcome.within_calls <= outcome.end - outcome.begin);
      }
      // Each slot contains bytes of the last group, at the side that they were copied to.
      const Side& to = sides.what.test->reads() ? sides.client : *sides.server;
      for (uint32_t slot = 0; slot < to.layout().slots(); ++slot) {
        CHECK(sides.client.ledger()[slot] < Pattern::windows);
        CHECK(to.slot(0, slot)[0] != std::byte{0xee});
      }
    }
  }
}

TEST_CASE("the atomics of a lane fetch and store what they should, at each width") {
  for (const NamedAtomic& kind : named_atomics) {
    for (const uint64_t bytes : {1, 2, 4, 8}) {
      CAPTURE(kind.name, bytes);
      LaneSides sides("lane_atomic_lat", bytes, kind);
      for (const uint64_t count : {100, 20'000}) {
        const Outcome outcome = sides.round(count);
        CHECK(outcome.messages == count);
        CHECK(outcome.verdict.wrong == 0);
      }
    }
  }
}

TEST_CASE("wrong bytes of a lane are noticed") {
  for (const NamedAtomic& kind : named_atomics) {
    LaneSides before("lane_atomic_lat", 8, kind);
    before.spoil_before = true;
    CHECK(before.round(200).verdict.wrong > 0);
    LaneSides after("lane_atomic_lat", 8, kind);
    after.spoil_after = true;
    CHECK(after.round(200).verdict.wrong == 1);
  }
  LaneSides writes("lane_write_lat", 64);
  writes.spoil_after = true;
  CHECK(writes.round(200).verdict.wrong == 1);
  LaneSides reads("lane_read_lat", 64);
  const uint64_t first = reads.client.layout().source_at(0);
  const std::span source = reads.server->source();
  const_cast<std::byte&>(source[0]) ^= std::byte{1};
  CHECK(reads.client.layout().source_begin() == first);
  // Only the first of 61 windows contains that byte.
  CHECK(reads.round(122).verdict.wrong == 2);
}

TEST_CASE("a lane to memory that is not there any longer fails, and the message has a cure") {
  LaneSides sides("lane_write_lat", 8);
  CHECK(sides.round(64).verdict.wrong == 0);
  sides.server.reset();
  Outcome outcome;
  try {
    sides.calls.run({.at = INT64_MAX, .count = 64}, outcome);
    FAIL("no call failed");
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::peer_lost);
    CHECK(std::string_view(failure.what()).find("Fix: ") != std::string_view::npos);
  }
}

TEST_CASE("as many calls as 16 KiB hold are timed together, from 1 to 64") {
  const auto calls = [](uint64_t bytes) {
    return calls_per_group({.test = find_test("lane_write_lat"), .bytes = bytes});
  };
  CHECK(calls(1) == 64);
  CHECK(calls(256) == 64);
  CHECK(calls(257) == 63);
  CHECK(calls(4096) == 4);
  CHECK(calls(uint64_t{1} << 30) == 1);
}

}  // namespace urma::apps::perf
