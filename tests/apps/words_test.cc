// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/words.h"

#include "apps/urma_perf/ordering.h"
#include "apps/urma_perf/responder.h"
#include "apps/urma_perf/stream.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

constexpr NamedAtomic both_kinds[] = {named_atomics[0], named_atomics[1]};

// Executes the work on a word in memory, and returns the previous value of the word.
uint64_t execute(Atomic atomic, const Work& work, uint64_t& word, uint64_t mask) {
  const uint64_t before = word;
  if (atomic == Atomic::fetch_add) word = (word + work.immediate_value) & mask;
  if (atomic == Atomic::compare_swap && word == work.expected_value) word = work.immediate_value;
  return before;
}

TEST_CASE("atomics: each compare-swap changes its word, and each work fetches the expected value") {
  for (const NamedAtomic& kind : both_kinds) {
    for (const uint64_t bytes : {1u, 2u, 4u, 8u}) {
      INFO(kind.name << ", " << bytes);
      const uint64_t mask = bytes == 8 ? UINT64_MAX : (uint64_t{1} << 8 * bytes) - 1;
      Words words(kind.atomic, bytes, 3);
      uint64_t memory = 0xeeee'eeee'eeee'eeee & mask;
      words.set(1, memory);
      Verdict verdict;
      for (int i = 0; i < 300; ++i) {
        Work work;
        words.aim(work, 1);
        const uint64_t fetched = execute(kind.atomic, work, memory, mask);
        CHECK(memory != fetched);
        words.check(1, fetched, verdict);
        CHECK(words.value(1) == memory);
      }
      CHECK(verdict.wrong == 0);
    }
  }
}

TEST_CASE("atomics: a wrong word is counted, once") {
  for (const NamedAtomic& kind : both_kinds) {
    INFO(kind.name);
    Words words(kind.atomic, 8, 1);
    uint64_t memory = 5;
    words.set(0, memory);
    Verdict verdict;
    const auto run = [&] {
      Work work;
      words.aim(work, 0);
      words.check(0, execute(kind.atomic, work, memory, UINT64_MAX), verdict);
    };
    run();
    CHECK(verdict.wrong == 0);
    memory ^= 1;  // as if a work had been executed twice, or not at all
    run();
    CHECK(verdict.wrong == 1);
    CHECK(verdict.first.find("was fetched") != std::string::npos);
    for (int i = 0; i < 10; ++i) run();
    CHECK(verdict.wrong == 1);
  }
}

// Both sides of a case in one process, on one device.
struct BothSides {
  explicit BothSides(const NamedAtomic& kind, uint32_t signal_every)
      : device(open("udp:").value()),
        client_done(device.jfc(1024).value()),
        server_done(device.jfc(1024).value()),
        what(case_of(kind, signal_every)),
        client(device, what, Place::client, std::array{&client_done}),
        server(device, what, Place::server, std::array{&server_done}),
        stream(client, {0, 1}, client_done, true),
        responder(server, false) {
    client.meet(device, server.describe());
    server.meet(device, client.describe());
  }
  static Case case_of(const NamedAtomic& kind, uint32_t signal_every) {
    Case out;
    out.test = find_test("atomic_bw");
    out.atomic = &kind;
    out.bytes = 8;
    out.depth = 8;
    out.jetties = 2;
    out.signal_every = signal_every;
    return out;
  }
  // Runs a round as `CaseRun` does. Returns the number of wrong messages.
  uint64_t round(bool spoil_after = false) {
    std::ranges::fill(client.ledger(), Side::never_written);
    responder.begin(false);
    const auto words = server.landing();
    if (!spoil_before) std::ranges::copy(words, client.landing().begin());
    Outcome outcome;
    stream.run({.at = INT64_MAX, .count = 1600}, outcome);
    std::ranges::copy(client.ledger(), server.ledger().begin());
    if (spoil_after) server.slot(1, 3)[0] ^= std::byte{1};
    return outcome.verdict.wrong + report_of(server, std::span(&responder, 1)).verdict.wrong;
  }

  Device device;
  Jfc client_done;
  Jfc server_done;
  const Case what;
  Side client;
  Side server;
  Stream stream;
  Responder responder;
  bool spoil_before = false;
};

TEST_CASE("atomics: a word whose value differs from the result of the works is noticed") {
  for (const NamedAtomic& kind : both_kinds) {
    for (const uint32_t signal_every : {1u, 4u}) {
      INFO(kind.name << ", one of " << signal_every << " signalled");
      BothSides sides(kind, signal_every);
      const std::vector<std::byte> untouched(8, std::byte{0xee});
      CHECK(sides.round() == 0);
      for (uint32_t jetty = 0; jetty < 2; ++jetty) {
        for (uint32_t slot = 0; slot < 8; ++slot) {
          CHECK_FALSE(std::ranges::equal(sides.server.slot(jetty, slot), untouched));
        }
      }
      CHECK(sides.round() == 0);
      CHECK(sides.round(true) == 1);
      // A word changes before a round without an update of the client's model.
      CHECK(sides.round() == 0);
      std::ranges::copy(sides.server.landing(), sides.client.landing().begin());
      sides.spoil_before = true;
      sides.server.slot(0, 3)[0] ^= std::byte{1};
      CHECK(sides.round() > 0);
    }
  }
}

}  // namespace
}  // namespace urma::apps::perf
