// SPDX-License-Identifier: Apache-2.0
#include "ordering/submit_gate.h"

#include <array>
#include <vector>

#include "tests/catch.h"
#include "tests/exhaustive/choices.h"

namespace urma::test {
namespace {

using ordering::SubmitGate;

// A model that states the rule as plainly as possible: which of the works have begun.
struct Model {
  struct Work {
    SubmitGate::Work asked;
    bool done = false;
  };
  std::vector<Work> works;

  bool fence_passed(size_t which) const {
    const Fence fence = works[which].asked.fence;
    for (size_t i = 0; i < which; ++i) {
      const bool waited_for = fence == Fence::all || works[i].asked.fetches;
      if (fence != Fence::none && waited_for && !works[i].done) return false;
    }
    return true;
  }
  bool begun(size_t which) const {
    for (size_t i = 0; i <= which; ++i) {
      // A cancelled work has ended, and its fence with it.
      if (!works[i].done && !fence_passed(i)) return false;
    }
    const SubmitGate::Work& asked = works[which].asked;
    if (asked.order != Order::strong) return true;
    for (size_t i = 0; i < which; ++i) {
      const SubmitGate::Work& before = works[i].asked;
      const bool kept_there = asked.group != SubmitGate::no_group && before.group == asked.group;
      if (before.order != Order::none && !works[i].done && !kept_there) return false;
    }
    return true;
  }
  SubmitGate::Open open() const {
    SubmitGate::Open open;
    for (const Work& work : works) {
      open.works += !work.done;
      open.fetching += !work.done && work.asked.fetches;
    }
    return open;
  }
};

struct Gate {
  std::array<SubmitGate::Slot, 8> slots{};
  SubmitGate gate;
  Model model;
  std::array<bool, 8> begun{};

  void post(const SubmitGate::Work& asked) {
    const auto berth = static_cast<uint16_t>(model.works.size());
    const SubmitGate::Open before = model.open();
    model.works.push_back({.asked = asked});
    if (gate.posted(slots.data(), berth, asked, before)) begin(berth);
  }
  void done(size_t work) {
    model.works[work].done = true;
    begun[work] = true;  // or will never begin
    gate.done(slots.data(), static_cast<uint16_t>(work));
  }
  void release() {
    while (const auto berth = gate.next_released(slots.data(), model.open())) begin(*berth);
  }
  // Checks that a work does not begin too early, and not before older works of its ordered group.
  void begin(size_t work) {
    if (begun[work]) FAIL("begun twice");
    if (!model.begun(work)) FAIL("begun too early");
    begun[work] = true;
    if (model.works[work].asked.order != Order::strong) return;
    for (size_t i = 0; i < work; ++i) {
      if (model.works[i].asked.order != Order::none && !begun[i]) FAIL("overtaken");
    }
  }
  bool as_the_rule_says() const {
    for (size_t i = 0; i < model.works.size(); ++i) {
      if (!model.works[i].done && begun[i] != model.begun(i)) return false;
    }
    return gate.busy() || model.open().works == 0 || !any_asked();
  }
  bool any_asked() const {
    for (const Model::Work& work : model.works) {
      if (!work.done && work.asked.order != Order::none) return true;
    }
    return false;
  }
};

// Ends works in every order. With `cancels`, works that have not begun may end, too.
void end_in_every_order(Gate& gate, Choices& choose, bool cancels) {
  for (size_t left = gate.model.works.size(); left > 0; --left) {
    std::vector<size_t> may_end;
    for (size_t i = 0; i < gate.model.works.size(); ++i) {
      if (!gate.model.works[i].done && (cancels || gate.begun[i])) may_end.push_back(i);
    }
    if (may_end.empty()) FAIL("no work can continue");
    gate.done(may_end[choose(static_cast<uint32_t>(may_end.size()))]);
    gate.release();
    if (!gate.as_the_rule_says()) FAIL("begun against the rule");
  }
  if (gate.gate.busy()) FAIL("a work is left");
}

TEST_CASE("seven works of any orders, ended in every order, begin as the rule says") {
  uint64_t histories = 0;
  for (Choices choose; choose.next_round(); ++histories) {
    Gate gate;
    for (int i = 0; i < 7; ++i) gate.post({.order = static_cast<Order>(choose(3))});
    if (!gate.as_the_rule_says()) FAIL("begun against the rule");
    end_in_every_order(gate, choose, false);
  }
  CHECK(histories > 500'000);
}

TEST_CASE("works with fences and groups, posted or cancelled at any time, begin as the rule says") {
  constexpr std::array<SubmitGate::Work, 11> kinds = {{
      {},
      {.fetches = true},
      {.fence = Fence::all},
      {.fence = Fence::reads, .fetches = true},
      {.order = Order::relaxed, .group = 1},
      {.order = Order::relaxed, .fetches = true},
      {.order = Order::strong, .group = 1},
      {.order = Order::strong, .group = 2},
      {.order = Order::strong},
      {.order = Order::strong, .fence = Fence::all, .group = 1},
      {.order = Order::strong, .fence = Fence::reads, .group = 2},
  }};
  uint64_t histories = 0;
  for (Choices choose; choose.next_round(); ++histories) {
    Gate gate;
    constexpr size_t most = 4;
    while (gate.model.works.size() < most) {
      gate.post(kinds[choose(kinds.size())]);
      // One of the earlier works may end now, and the next may be posted before any is released.
      const uint32_t ends = choose(static_cast<uint32_t>(gate.model.works.size()) + 1);
      const bool ended = ends < gate.model.works.size() && !gate.model.works[ends].done;
      if (ended) gate.done(ends);
      if (ended && gate.model.works.size() < most && choose.boolean()) continue;
      gate.release();
      if (!gate.as_the_rule_says()) FAIL("begun against the rule");
    }
    std::vector<size_t> left;
    for (size_t i = 0; i < most; ++i) {
      if (!gate.model.works[i].done) left.push_back(i);
    }
    while (!left.empty()) {
      const uint32_t which = choose(static_cast<uint32_t>(left.size()));
      gate.done(left[which]);
      gate.release();
      left.erase(left.begin() + which);
      if (!gate.as_the_rule_says()) FAIL("begun against the rule");
    }
    if (gate.gate.busy()) FAIL("a work is left");
  }
  CHECK(histories > 500'000);
}

}  // namespace
}  // namespace urma::test
