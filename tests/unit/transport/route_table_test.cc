// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::Route;
using transport::RouteTable;

TEST_CASE("the n-th route connects the n-th addresses of both ends; the shorter list repeats") {
  for (uint8_t ours = 1; ours <= 8; ++ours) {
    for (uint8_t theirs = 1; theirs <= 8; ++theirs) {
      Slab<RouteTable::Four> more(1);
      RouteTable table(&more);
      const auto changes = table.lead(addresses(ours, 1), addresses(theirs, 2), Time{}, moment(0s));
      const uint8_t count = std::max(ours, theirs);
      CHECK(changes.added == (1u << count) - 1);
      CHECK(changes.removed == 0);
      CHECK(more.size() == (count > 4 ? 1 : 0));
      REQUIRE(table.count() == count);
      for (uint8_t i = 0; i < count; ++i) {
        CHECK(table[i].local == i % ours);
        CHECK(table[i].to == address(i % theirs, 2));
        CHECK(table.find(i % ours, address(i % theirs, 2)) == i);
      }
      CHECK_FALSE(table.find(0, address(0, 3)));
    }
  }
}

TEST_CASE("a route that is removed is found until another one has its addresses or its number") {
  TableOf with(3);
  RouteTable& table = with.table;
  PathList theirs = addresses(3, 2);
  theirs.set(1, {});
  const auto changes = table.lead(addresses(3, 1), theirs, moment(10ms), moment(10ms));
  CHECK(changes.removed == 0b010);
  CHECK(changes.added == 0);
  CHECK(table.count() == 3);
  CHECK(table.find(1, address(1, 2)) == 1);
  CHECK(table.leads_to(address(1, 2)));
  CHECK_FALSE(table.goes_to(address(1, 2)));
  CHECK(table.goes_to(address(2, 2)));
  // The same addresses with another number: the new route takes over the packets of the removed
  // one.
  PathList ours = addresses(3, 1);
  ours.set(0, address(1, 1));
  ours.set(1, {});
  theirs.set(1, address(1, 2));
  theirs.set(0, address(1, 9));
  const auto again = table.lead(ours, theirs, moment(20ms), moment(20ms));
  CHECK(again.removed == 0b001);
  CHECK(again.added == 0b001);
  CHECK(table[0].to == address(1, 9));
  CHECK_FALSE(table.leads_to(address(0, 2)));
}

TEST_CASE("packets that were sent before a route was added did not take it") {
  TableOf with(2);
  PathList ours = addresses(2, 1);
  ours.set(1, address(1, 9));
  CHECK(with.table[1].carried(moment(0s)));
  // A route starts at the number of an address here, not at the address itself, so this route has
  // not changed.
  CHECK(with.table.lead(ours, addresses(2, 2), moment(10ms), moment(10ms)).added == 0);
  PathList theirs = addresses(2, 2);
  theirs.set(1, address(1, 9));
  const auto changes = with.table.lead(ours, theirs, moment(10ms), moment(10ms));
  CHECK(changes.added == 0b10);
  CHECK(changes.removed == 0b10);
  CHECK_FALSE(with.table[1].carried(moment(10ms) - Duration(1)));
  CHECK(with.table[1].carried(moment(10ms)));
  CHECK(with.table[0].carried(moment(0s)));
}

TEST_CASE("if no number has an address at both ends, the first addresses are paired") {
  TableOf with(3);
  PathList ours = addresses(3, 1);
  PathList theirs = addresses(3, 2);
  ours.set(1, {});
  theirs.set(0, {});
  theirs.set(2, {});
  const auto changes = with.table.lead(ours, theirs, moment(10ms), moment(10ms));
  CHECK(changes.removed == 0b111);
  CHECK(changes.added == 0b01);
  CHECK(with.table[0].there);
  CHECK(with.table[0].to == address(1, 2));
  CHECK(with.table.count() == 1);
}

TEST_CASE("eight lists within 100 ms count as frequent changes, and not after that") {
  TableOf with(2);
  RouteTable& table = with.table;
  const PathList ours = addresses(2, 1);
  for (int i = 0; i < 6; ++i) table.lead(ours, addresses(2, 2), moment(1ms), moment(1ms));
  CHECK_FALSE(table.led_often(moment(2ms)));
  table.lead(ours, addresses(2, 2), moment(2ms), moment(2ms));
  CHECK(table.led_often(moment(2ms)));
  CHECK(table.led_often(moment(99ms)));
  CHECK_FALSE(table.led_often(moment(100ms)));
  table.lead(ours, addresses(2, 2), moment(100ms), moment(100ms));
  CHECK_FALSE(table.led_often(moment(100ms)));
}

TEST_CASE("totals are kept for each path of this device, not for each route") {
  RouteTable table(nullptr);
  table.lead(addresses(1, 1), addresses(3, 2), Time{}, moment(0s));
  CHECK(table.totals(2) == nullptr);
  transport::AllPathTotals totals;
  table.count_in(totals);
  CHECK(table.totals(0) == &totals[0]);
  CHECK(table.totals(2) == &totals[0]);
}

TEST_CASE("the numbers of lists wrap when the newer of two is found") {
  PathList list;
  for (const uint32_t number : {0u, 5u, PathList::number_mask}) {
    list.number = (number + 1) & PathList::number_mask;
    CHECK(list.newer_than(number));
    list.number = number;
    CHECK_FALSE(list.newer_than(number));
    CHECK_FALSE(list.newer_than((number + 1) & PathList::number_mask));
  }
}

}  // namespace
}  // namespace urma::test
