// SPDX-License-Identifier: Apache-2.0
#include "ordering/execute_gate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/exhaustive/choices.h"
#include "urma/core/order.h"

namespace urma::test {
namespace {

using ordering::ExecuteGate;

constexpr size_t most = 7;

// States the rule: a strong slice may be executed once all slices before it have arrived, and those
// of them that are relaxed or strong have been executed.
bool may(const std::array<Order, most>& orders, const std::array<bool, most>& came,
         const std::array<bool, most>& executed, size_t which) {
  if (orders[which] != Order::strong) return true;
  for (size_t i = 0; i < which; ++i) {
    if (!came[i] || (orders[i] != Order::none && !executed[i])) return false;
  }
  return true;
}

TEST_CASE("slices of up to seven orders, arriving in every order, are executed by the rule") {
  uint64_t histories = 0;
  for (Choices choose; choose.next_round(); ++histories) {
    std::array<Order, most> orders{};
    for (Order& order : orders) order = static_cast<Order>(choose(3));
    std::array<bool, most> came{};
    std::array<bool, most> executed{};
    const Tassn first = Tassn::first(0xfffe);  // its numbers wrap
    ExecuteGate gate(first);
    for (size_t arrivals = 0; arrivals < most; ++arrivals) {
      size_t which = 0;
      uint32_t skip = choose(static_cast<uint32_t>(most - arrivals));
      while (came[which] || skip-- > 0) ++which;
      came[which] = true;
      if (orders[which] == Order::none) gate.pass(first + which);
      // Executes what may be executed, the oldest first.
      for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < most; ++i) {
          if (!came[i] || executed[i]) continue;
          const bool opens = orders[i] != Order::strong || gate.open(first + i);
          if (opens != may(orders, came, executed, i)) FAIL("executed against the rule");
          if (!opens) continue;
          executed[i] = any = true;
          if (orders[i] != Order::none) gate.pass(first + i);
        }
      }
    }
    if (std::ranges::count(executed, true) != most) FAIL("a slice waits for ever");
    if (gate.first() != first + most) FAIL("a slice has not passed");
  }
  CHECK(histories == 3 * 3 * 3 * 3 * 3 * 3 * 3 * uint64_t{5040});
}

// Covers the window many times, and compares the gate with a set of the numbers that have passed.
TEST_CASE("the gate agrees with a plain set of numbers, in any order") {
  Prng prng(7);
  ExecuteGate gate(Tassn::first(0));
  const Tassn base = Tassn::first(0);
  std::vector<bool> passed(100'000);
  size_t first = 0;
  const auto skip = [&] {
    while (passed[first]) ++first;
  };
  while (first < 90'000) {
    const uint64_t dice = prng.below(1000);
    if (dice == 0) {
      const size_t at = first + prng.below(ExecuteGate::window * 2);
      gate.begin_at(base + at);
      first = std::max(first, at);
    } else {
      const size_t reach = dice < 10 ? ExecuteGate::window + 50 : 40;
      const size_t at = first + prng.below(reach);
      gate.pass(base + at);
      passed[at] = true;
      if (at - first >= ExecuteGate::window) first = at - (ExecuteGate::window - 1);
      skip();
      if (dice > 900) {
        gate.pass(gate.first());
        passed[first] = true;
      }
    }
    skip();
    if (gate.first() != base + first) FAIL("at " << first);
  }
}

// A sender that respects the window does not send such numbers.
TEST_CASE("a number that passes beyond the window moves the window, by as little as possible") {
  const Tassn first = Tassn::first(7);
  for (const uint64_t ahead : {1023u, 1024u, 1025u, 3000u}) {
    ordering::ExecuteGate gate(first);
    gate.pass(first + ahead);
    const Tassn now = ahead < 1024 ? first : first + (ahead - 1023);
    CHECK(gate.first() == now);
    CHECK_FALSE(gate.open(now + 1));
    for (Tassn each = now; each < first + ahead; ++each) gate.pass(each);
    CHECK(gate.first() == first + ahead + 1);
  }
}

}  // namespace
}  // namespace urma::test
