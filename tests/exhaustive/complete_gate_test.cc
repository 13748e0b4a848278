// SPDX-License-Identifier: Apache-2.0
#include "ordering/complete_gate.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/exhaustive/choices.h"

namespace urma::test {
namespace {

// A model that states the rule as plainly as possible: which ended works may have their completions
// shown.
struct ShownModel {
  struct Work {
    bool signalled;
    bool failed = false;
    bool done = false;
  };
  bool in_order = false;
  std::vector<Work> works;

  std::set<size_t> shown() const {
    std::set<size_t> out;
    bool all_unsignalled_done = true;
    bool all_done = true;
    for (size_t i = 0; i < works.size(); ++i) {
      const Work& work = works[i];
      if (work.done && work.failed && (all_done || !in_order)) out.insert(i);
      if (in_order && !all_done) all_unsignalled_done = false;
      if (work.done && !work.failed && work.signalled && all_unsignalled_done) out.insert(i);
      if (!work.signalled && !work.done) all_unsignalled_done = false;
      all_done = all_done && work.done;
    }
    return out;
  }
};

struct ShowingGate {
  std::array<ordering::CompleteGate::Slot, 8> slots{};
  ordering::CompleteGate gate{slots.data()};
  std::set<size_t> shown;
  uint16_t works = 0;

  bool in_order = false;

  void post(bool signalled) { gate.posted(works++, signalled, in_order); }
  void done(size_t work, bool failed) {
    if (gate.done(static_cast<uint16_t>(work), failed)) REQUIRE(shown.insert(work).second);
    while (const auto released = gate.next_released()) REQUIRE(shown.insert(*released).second);
  }
};

uint64_t all_histories(bool in_order) {
  constexpr uint32_t works = 6;
  uint64_t histories = 0;
  for (Choices choose; choose.next_round(); ++histories) {
    ShownModel model{.in_order = in_order, .works = {}};
    ShowingGate gate;
    gate.in_order = in_order;
    uint32_t open = 0;
    // Posts works and ends them in every order; a work fails or succeeds.
    while (model.works.size() < works || open > 0) {
      const bool may_post = model.works.size() < works;
      const uint32_t choice = choose(open + (may_post ? 2 : 0));
      if (choice >= open) {
        const bool signalled = choice - open == 0;
        model.works.push_back({.signalled = signalled});
        gate.post(signalled);
        ++open;
        // Limits the number of histories: the last three works end in any order, but are posted
        // first.
        if (model.works.size() >= 3) {
          while (model.works.size() < works) {
            const bool next = choose.boolean();
            model.works.push_back({.signalled = next});
            gate.post(next);
            ++open;
          }
        }
      } else {
        uint32_t skip = choice;
        size_t which = 0;
        while (model.works[which].done || skip-- > 0) ++which;
        ShownModel::Work& work = model.works[which];
        work.done = true;
        // One kind of failure for each position is enough to cover every neighbourhood.
        work.failed = which == 1 && choose.boolean();
        gate.done(which, work.failed);
        --open;
      }
      if (gate.shown != model.shown()) {
        FAIL("history " << histories << ": shown " << gate.shown.size() << ", the rule says "
                        << model.shown().size());
      }
    }
  }
  return histories;
}

TEST_CASE("in every history of up to six works, completions are shown exactly as the rule says") {
  CHECK(all_histories(false) > 50'000);
  CHECK(all_histories(true) > 50'000);  // each completion in post order
}

TEST_CASE(
    "berths are reused for ever, even while an old unsignalled work is open and others fail") {
  std::array<ordering::CompleteGate::Slot, 4> slots{};
  ordering::CompleteGate gate(slots.data());
  for (uint32_t lap = 0; lap < 1000; ++lap) {
    gate.posted(0, false);
    gate.posted(1, true);
    REQUIRE_FALSE(gate.done(1, false));
    REQUIRE_FALSE(gate.next_released());
    for (int i = 0; i < 10; ++i) {
      gate.posted(2, true);
      REQUIRE(gate.done(2, true));
      REQUIRE_FALSE(gate.next_released());
    }
    REQUIRE_FALSE(gate.done(0, false));
    REQUIRE(gate.next_released() == std::optional<uint16_t>(1));
    REQUIRE_FALSE(gate.next_released());
  }
}

}  // namespace
}  // namespace urma::test
