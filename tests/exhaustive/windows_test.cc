// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "jetty/target/execution_record.h"
#include "tests/catch.h"
#include "tests/exhaustive/choices.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/sent_window.h"

namespace urma::test {
namespace {

using transport::ReceivedWindow;
using transport::SentWindow;
using transport::SliceRef;

TEST_CASE("the received window agrees with a set for every short sequence of PSNs") {
  constexpr uint32_t window = 4;
  constexpr uint32_t length = 6;
  for (const uint32_t first_wire : {100u, 0xfffffeu}) {
    for (Choices choose; choose.next_round();) {
      ReceivedWindow::Pool pool(1);
      const Psn first = Psn::first(first_wire);
      ReceivedWindow received(first, window, true);
      std::set<uint64_t> model;
      uint64_t expected = first.value;
      uint64_t highest = first.value - 1;
      for (uint32_t i = 0; i < length; ++i) {
        // The PSNs go from one before the first to one beyond the window.
        const uint64_t psn = first.value - 1 + choose(window + 3);
        auto arrival = ReceivedWindow::Arrival::fresh;
        if (psn < expected || model.contains(psn)) arrival = ReceivedWindow::Arrival::duplicate;
        if (psn >= expected + window) arrival = ReceivedWindow::Arrival::invalid;
        REQUIRE(received.receive(Psn{psn}, pool) == arrival);
        if (arrival == ReceivedWindow::Arrival::fresh) {
          model.insert(psn);
          highest = std::max(highest, psn);
        }
        while (model.contains(expected)) ++expected;
        REQUIRE(received.expected().value == expected);
        REQUIRE(received.highest().value == highest);
        const bool hole = !model.empty() && *model.rbegin() >= expected;
        REQUIRE(received.has_hole() == hole);
        REQUIRE(pool.size() == (hole ? 1 : 0));
        const Saetph selective = received.selective(Saetph::max_bits, pool);
        for (uint32_t bit = 1; bit < 8; ++bit) {
          REQUIRE(selective.bit(bit) == model.contains(expected - 1 + bit));
        }
      }
      received.release(pool);
    }
  }
}

TEST_CASE("without memory, a packet out of order is refused and still raises the highest PSN") {
  ReceivedWindow::Pool pool(0);
  ReceivedWindow received(Psn::first(7), 16, true);
  CHECK(received.receive(Psn::first(9), pool) == ReceivedWindow::Arrival::no_memory);
  CHECK(received.highest() == Psn::first(9));
  CHECK(received.receive(Psn::first(7), pool) == ReceivedWindow::Arrival::fresh);
  CHECK(received.receive(Psn::first(9), pool) == ReceivedWindow::Arrival::no_memory);
}

TEST_CASE("the sent window agrees with a list about acknowledged, lost and retired packets") {
  constexpr uint32_t packets = 4;
  for (Choices choose; choose.next_round();) {
    SentWindow::Pool pool(4);
    const Psn first = Psn::first(0xfffffe);
    SentWindow sent(first, nullptr);
    struct Entry {
      bool acknowledged = false;
      bool lost = false;
    };
    std::map<uint64_t, Entry> model;
    for (uint32_t i = 0; i < packets; ++i) {
      sent.push({.slice = {i, 1}, .bytes = 10, .last = true}, Time(Duration(i * 1000)), pool);
      model[first.value + i] = {};
    }
    std::set<uint32_t> retired;
    for (int round = 0; round < 2; ++round) {
      const uint64_t through = first.value - 1 + choose(packets + 1);
      Saetph selective;
      for (uint32_t bit = 1; bit <= 2; ++bit) {
        if (choose.boolean()) selective.set_bit(bit);
      }
      if (choose.boolean()) {
        sent.mark_all_lost(Duration{}, Time(Duration(10'000)), pool);
        for (auto& [psn, entry] : model) entry.lost = !entry.acknowledged;
      }
      sent.acknowledge(Psn{through}, &selective, {}, Time(Duration(10'000)), pool);
      for (auto& [psn, entry] : model) {
        const bool named = psn <= through || (psn - through < 64 &&
                                              selective.bit(static_cast<uint32_t>(psn - through)));
        if (named) entry = {.acknowledged = true, .lost = false};
      }
      std::array<SliceRef, 8> delivered;
      for (size_t i = 0, count = sent.retire(delivered, pool); i < count; ++i) {
        REQUIRE(retired.insert(delivered[i].slot).second);
      }
      while (!model.empty() && model.begin()->second.acknowledged) model.erase(model.begin());
      const uint64_t oldest = model.empty() ? first.value + packets : model.begin()->first;
      REQUIRE(sent.first().value == oldest);
      REQUIRE(sent.next().value == first.value + packets);
      REQUIRE(retired.size() == oldest - first.value);
      uint64_t inflight = 0;
      uint32_t lost = 0;
      for (const auto& [psn, entry] : model) {
        lost += entry.lost;
        inflight += !entry.acknowledged && !entry.lost ? 10 : 0;
      }
      REQUIRE(sent.inflight_bytes() == inflight);
      REQUIRE(sent.lost_packets() == lost);
      REQUIRE(sent.check(pool));
    }
    sent.release(pool);
  }
}

TEST_CASE("the execution record agrees with a map of the last W slices") {
  using jetty::ExecutionRecord;
  using Mark = ExecutionRecord::Mark;
  // These steps cross the edges of the window in both directions, and the wrap of the 16 bits on
  // the wire.
  constexpr int64_t steps[] = {
      1, 2, ExecutionRecord::window - 1, ExecutionRecord::window, -1, -1023, -1024, 32'000};
  for (Choices choose; choose.next_round();) {
    ExecutionRecord record(65'000);
    uint64_t newest = Tassn::first(65'000).value;
    std::map<uint64_t, Mark> model;
    for (int i = 0; i < 4; ++i) {
      const uint64_t tassn = newest + static_cast<uint64_t>(steps[choose(std::size(steps))]);
      const Tassn named = record.unwrap(static_cast<uint32_t>(tassn % Tassn::modulus));
      REQUIRE(named.value == tassn);
      newest = std::max(newest, tassn);
      const bool known = newest - tassn < ExecutionRecord::window;
      REQUIRE(record.see(named) == known);
      if (!known) continue;
      REQUIRE(record.mark(named) == model[tassn]);
      model[tassn] = choose.boolean() ? Mark::executed : Mark::withdrawn;
      record.set(named, model[tassn]);
    }
  }
}

}  // namespace
}  // namespace urma::test
