// SPDX-License-Identifier: Apache-2.0
// A use of a segment and its end (drivers/cxl: Holder, Barriers, Segments), in every order of their
// steps: a device says that it uses the segment, reads whether it is open, and copies; its owner
// closes the segment, reads which device uses it, and gives the memory to another device if no
// device does. Stores reach memory late. If the owner cannot interrupt the user, it joins while the
// user is at any step, says so in the window, and the user takes a fence from then on. Mutants show
// that each step is needed.

#include <cstdint>

#include "tests/catch.h"
#include "tests/exhaustive/explored.h"

namespace urma::test::holds {
namespace {

struct Rules {
  bool interrupts = true;     // the owner can interrupt the user
  bool barrier = true;        // and does
  bool closes_first = true;   // before the barrier
  bool says_first = true;     // the user says that it uses the segment, and then reads the epoch
  bool user_fences = true;    // where the window says so
  bool joins_slowly = true;   // the owner's join takes longer than a store
  bool releases_last = true;  // the user, after its copy
};

enum User : uint8_t { idle, begun, said, asked, looked, copying, copied };
enum Owner : uint8_t { outside, joining, member, closing, closed, visible, gave_away };

constexpr uint8_t uses = 2;

// A store of 0 or 1 that has not reached memory, of the word `hold`; 2: there is none.
constexpr uint8_t none = 2;
struct State {
  uint8_t user;
  uint8_t used;
  uint8_t open_seen;
  uint8_t waiting[2];  // the user's stores to `hold`, the oldest first
  uint8_t hold;
  uint8_t fences;
  uint8_t open;          // in memory
  uint8_t open_waiting;  // 1: the store that closes it has not reached memory
  uint8_t owner;
};

class Explorer {
 public:
  explicit Explorer(const Rules& rules) : rules_(rules) {}

  // Returns whether a copy can reach memory that was given away.
  bool late_copy() {
    visit({.user = idle,
           .used = 0,
           .open_seen = 0,
           .waiting = {none, none},
           .hold = 0,
           .fences = 0,
           .open = 1,
           .open_waiting = 0,
           .owner = outside});
    while (!explored_.done()) {
      const State state = explored_.take();
      if (state.owner == gave_away && state.user == copying) return true;
      step_user(state);
      step_owner(state);
      step_stores(state);
    }
    return false;
  }
  size_t states() const { return explored_.states(); }

 private:
  void visit(const State& state) { explored_.visit(state); }
  static bool stores(State& state, uint8_t value) {
    uint8_t* const place = state.waiting[0] == none ? &state.waiting[0] : &state.waiting[1];
    if (*place != none) return false;  // the queue is full: the user waits
    *place = value;
    return true;
  }
  static bool drained(const State& state) { return state.waiting[0] == none; }
  static void drain(State& state) {
    while (!drained(state)) drain_one(state);
  }
  static void drain_one(State& state) {
    state.hold = state.waiting[0];
    state.waiting[0] = state.waiting[1];
    state.waiting[1] = none;
  }

  void step_user(State state) {
    switch (state.user) {
      case idle:
        if (state.used == uses) return;
        ++state.used;
        state.open_seen = rules_.says_first ? 0 : state.open;
        goes(state, begun);
        return;
      case begun:
        if (stores(state, 1)) goes(state, said);
        return;
      case said:  // reads whether fences are needed
        goes(state, state.fences != 0 && rules_.user_fences ? asked : looked);
        return;
      case asked:
        if (drained(state)) goes(state, looked);
        return;
      case looked:
        if (rules_.says_first) state.open_seen = state.open;
        if (state.open_seen == 0) return lets_go(state);
        if (!rules_.releases_last && !stores(state, 0)) return;
        goes(state, copying);
        return;
      case copying:
        goes(state, copied);
        return;
      case copied:
        rules_.releases_last ? lets_go(state) : goes(state, idle);
        return;
      default:
        return;
    }
  }
  void goes(State state, uint8_t to) {
    state.user = to;
    visit(state);
  }
  void lets_go(State state) {
    if (stores(state, 0)) goes(state, idle);
  }

  void step_owner(State state) {
    switch (state.owner) {
      case outside:
        if (!rules_.interrupts) state.fences = 1;
        state.owner = joining;
        break;
      case joining:
        // Meanwhile, stores become visible that the user made before it could see the word.
        if (rules_.joins_slowly && !rules_.interrupts && !drained(state)) return;
        state.owner = member;
        break;
      case member:
        if (rules_.closes_first) state.open_waiting = 1;
        state.owner = closing;
        break;
      case closing:  // a barrier waits for the owner's stores as well
        if (rules_.barrier) {
          state.open = state.open_waiting != 0 ? 0 : state.open;
          state.open_waiting = 0;
          if (rules_.interrupts) drain(state);
        }
        if (!rules_.closes_first) state.open_waiting = 1;
        state.owner = closed;
        break;
      case closed:
        if (state.hold != 0) return;
        state.owner = gave_away;
        break;
      default:
        return;
    }
    visit(state);
  }

  void step_stores(const State& state) {
    if (!drained(state)) {
      State next = state;
      drain_one(next);
      visit(next);
    }
    if (state.open_waiting != 0) {
      State next = state;
      next.open = 0;
      next.open_waiting = 0;
      visit(next);
    }
  }

  const Rules rules_;
  Explored<State> explored_;
};

bool late_copy(const Rules& rules) { return Explorer(rules).late_copy(); }

TEST_CASE("no copy reaches memory that its owner has given away") {
  for (const bool interrupts : {true, false}) {
    Explorer explorer({.interrupts = interrupts});
    CHECK_FALSE(explorer.late_copy());
    CHECK(explorer.states() > 100);
  }
}

TEST_CASE("each step of a hold and of its owner is needed") {
  for (const bool interrupts : {true, false}) {
    INFO(interrupts);
    CHECK(late_copy({.interrupts = interrupts, .barrier = false}));
    CHECK(late_copy({.interrupts = interrupts, .closes_first = false}));
    CHECK(late_copy({.interrupts = interrupts, .says_first = false}));
    CHECK(late_copy({.interrupts = interrupts, .releases_last = false}));
  }
  CHECK(late_copy({.interrupts = false, .user_fences = false}));
  CHECK(late_copy({.interrupts = false, .joins_slowly = false}));
}

}  // namespace
}  // namespace urma::test::holds
