// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <vector>

#include "jetty/queues.h"
#include "tests/catch.h"
#include "tests/exhaustive/choices.h"

namespace urma::test {
namespace {

using jetty::Jfc;
using jetty::Leases;
using jetty::Queues;

TEST_CASE("each permit is in exactly one place, in every order of taking and giving back") {
  constexpr uint16_t count = 3;
  constexpr int length = 12;
  for (Choices choose; choose.next_round();) {
    Leases leases(count);
    std::multiset<uint16_t> application, posted, engine;
    uint32_t vacant = count;
    for (int i = 0; i < length; ++i) {
      switch (choose(3)) {
        case 0:
          if (vacant == 0) break;
          application.insert(leases.take_vacant());
          leases.stage(*application.begin());
          leases.publish();
          posted.insert(*application.begin());
          application.clear();
          --vacant;
          break;
        case 1: {
          if (leases.waiting() == 0) break;
          const uint16_t lease = leases.take_posted();
          REQUIRE(posted.erase(lease) == 1);
          engine.insert(lease);
          break;
        }
        case 2:
          if (engine.empty()) break;
          leases.give_back(*engine.begin());
          engine.erase(engine.begin());
          ++vacant;
          break;
      }
      REQUIRE(leases.vacant() == vacant);
      REQUIRE(leases.waiting() == posted.size());
      REQUIRE(vacant + posted.size() + engine.size() == count);
      std::set<uint16_t> distinct(posted.begin(), posted.end());
      distinct.insert(engine.begin(), engine.end());
      REQUIRE(distinct.size() == posted.size() + engine.size());
    }
  }
}

TEST_CASE(
    "post accepts as many works as there are berths, and keeps the last for a signalled one") {
  const RemoteSegment segment{.peer = {1, 1}, .bytes = 64, .rights = Rights::write};
  for (uint16_t berths = 1; berths <= 4; ++berths) {
    for (Choices choose; choose.next_round();) {
      Jfc jfc(Queues::entries_of(berths, 0));
      Queues queues(berths, 0, jfc);
      std::vector<Work> works;
      size_t expected = 0;
      bool stopped = false;
      for (uint32_t i = 0; i < 5; ++i) {
        Work work = write(std::span<const std::byte>{}, segment);
        work.signalled = choose.boolean();
        works.push_back(work);
        const size_t vacant = berths - expected;
        stopped = stopped || vacant == 0 || (vacant == 1 && !work.signalled);
        if (!stopped) ++expected;
      }
      REQUIRE(queues.post(works) == expected);
      REQUIRE(queues.vacant_berths() == berths - expected);
      REQUIRE(queues.jfs().waiting() == expected);
    }
  }
}

TEST_CASE("berths of unsignalled works return with the completion behind them") {
  Jfc jfc(Queues::entries_of(4, 0));
  Queues queues(4, 0, jfc);
  REQUIRE(jfc.reserve(queues.entries()));
  const RemoteSegment segment{.peer = {1, 1}, .bytes = 64, .rights = Rights::write};
  std::vector<Work> works(4, write(std::span<const std::byte>{}, segment));
  for (int i = 0; i < 3; ++i) works[static_cast<size_t>(i)].signalled = false;
  for (int lap = 0; lap < 100; ++lap) {
    REQUIRE(queues.post(works) == 4);
    uint16_t chained = Queues::none;
    for (int i = 0; i < 4; ++i) {
      const uint16_t lease = queues.jfs().take_posted();
      queues.jfs().chain(lease, chained);
      chained = lease;
    }
    jfc.push({.from = {}}, &queues, chained);
    std::array<Completion, 8> out;
    REQUIRE(jfc.poll(out) == 1);
    REQUIRE(queues.vacant_berths() == 4);
  }
}

}  // namespace
}  // namespace urma::test
