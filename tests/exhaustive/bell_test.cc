// SPDX-License-Identifier: Apache-2.0
// The bell (base/bell.h) with one sleeper and two bringers, in every order of their steps: stores
// reach memory late (each processor has a queue of stores, and a fence waits for it), bringers die
// between any two steps, and sleepers wake spuriously. The steps are those of Bell and of
// DescriptorSleep::sleep_for, written again as a table. Mutants show that each of them is needed.

#include <array>
#include <cstdint>

#include "tests/catch.h"
#include "tests/exhaustive/explored.h"

namespace urma::test::bell {
namespace {

// If a bringer finds the word rung: decides whether it relies on that ring.
enum class Trust : uint8_t {
  own_mark,   // on its own ring, which it recognises by its number in the word
  own_sleep,  // on its own ring, if the word contained the number of the sleep instead
  anybody,    // on the ring of any bringer
};

struct Rules {
  bool fence_of_sleeper = true;
  bool fence_of_bringer = true;
  bool ring_changes_word = true;
  bool recheck_in_kernel = true;
  Trust trust = Trust::own_mark;
};

constexpr uint8_t bringers = 2;
constexpr uint8_t brings = 2;  // how often each of them brings something
constexpr uint8_t asleep = 1;
constexpr uint8_t rang = 2;
constexpr uint8_t state_mask = 3;
constexpr uint8_t sleep_numbers = 8;

// A queue of stores that have not reached memory. Their addresses: the data of each bringer, then
// the word.
constexpr uint8_t word = bringers;
struct Store {
  uint8_t place;
  uint8_t value;
};
struct Queue {
  std::array<Store, 4> stores;
  uint8_t count;
};

enum Sleeper : uint8_t { drowse, fence, look, look_more, rest, wait, sleeping, awake };
enum Bringer : uint8_t { publish, bringers_fence, read, ring, wake, dead };

// The whole state, without padding: it is compared and hashed by its bytes.
struct State {
  std::array<uint8_t, bringers + 1> memory;
  std::array<Queue, bringers + 1> queues;  // those of the bringers, then that of the sleeper
  uint8_t sleeper;
  uint8_t expected;  // the value of the word that the sleeper has read
  std::array<uint8_t, bringers> seen;
  uint8_t wakes_for_nothing;
  struct {
    uint8_t at;
    uint8_t value;  // the value that it has read in the word
    uint8_t rung;
    uint8_t brought;
  } bringer[bringers];
};

class Explorer {
 public:
  explicit Explorer(const Rules& rules) : rules_(rules) {}

  // Returns whether the sleeper may sleep for ever although a living bringer has brought something.
  bool misses_something() {
    visit(State{});
    while (!explored_.done()) {
      const State state = explored_.take();
      if (is_lost(state)) return true;
      step_sleeper(state);
      for (uint8_t who = 0; who < bringers; ++who) step_bringer(state, who);
      for (uint8_t queue = 0; queue <= bringers; ++queue) drain(state, queue);
    }
    return false;
  }
  size_t states() const { return explored_.states(); }

 private:
  static constexpr uint8_t sleepers_queue = bringers;

  void visit(const State& state) { explored_.visit(state); }

  // Returns whether the sleeper has missed something, and only a spurious wake-up can still wake
  // it.
  static bool is_lost(const State& state) {
    if (state.sleeper != sleeping) return false;
    bool something = false;
    for (uint8_t who = 0; who < bringers; ++who) {
      const auto& bringer = state.bringer[who];
      const bool done = bringer.at == publish && bringer.brought == brings;
      if (!done && bringer.at != dead) return false;
      something = something || (done && state.memory[who] != state.seen[who]);
    }
    for (const Queue& queue : state.queues) {
      if (queue.count > 0) return false;
    }
    return something;
  }

  static uint8_t load(const State& state, uint8_t queue, uint8_t place) {
    const Queue& own = state.queues[queue];
    for (uint8_t i = own.count; i > 0; --i) {
      if (own.stores[i - 1].place == place) return own.stores[i - 1].value;
    }
    return state.memory[place];
  }
  static bool store(State& state, uint8_t queue, uint8_t place, uint8_t value) {
    Queue& own = state.queues[queue];
    if (own.count == own.stores.size()) return false;  // then a processor waits
    own.stores[own.count++] = {place, value};
    return true;
  }
  void drain(State state, uint8_t which) {
    Queue& queue = state.queues[which];
    if (queue.count == 0) return;
    state.memory[queue.stores[0].place] = queue.stores[0].value;
    for (uint8_t i = 1; i < queue.count; ++i) queue.stores[i - 1] = queue.stores[i];
    queue.stores[--queue.count] = {};
    visit(state);
  }

  uint8_t asleep_word(uint8_t now) const {
    if (rules_.trust != Trust::own_sleep) return asleep;
    return static_cast<uint8_t>(((now / 4 + 1) % sleep_numbers) * 4 + asleep);
  }
  uint8_t rung_word(uint8_t now, uint8_t who) const {
    const bool by_sleep = rules_.trust == Trust::own_sleep;
    return static_cast<uint8_t>((by_sleep ? now & ~state_mask : (who + 1) * 4) + rang);
  }
  bool is_rung(uint8_t value, uint8_t rung) const {
    return rules_.trust == Trust::anybody ? (value & state_mask) == rang : value == rung;
  }

  void step_sleeper(State state) {
    const uint8_t now = load(state, sleepers_queue, word);
    const bool drained = state.queues[sleepers_queue].count == 0;
    switch (state.sleeper) {
      case drowse:
        if (!store(state, sleepers_queue, word, asleep_word(now))) return;
        state.sleeper = fence;
        return visit(state);
      case fence:
        if (rules_.fence_of_sleeper && !drained) return;
        state.sleeper = look;
        return visit(state);
      case look:
      case look_more: {
        const uint8_t who = state.sleeper - look;
        const bool something = load(state, sleepers_queue, who) != state.seen[who];
        state.seen[who] = load(state, sleepers_queue, who);
        state.sleeper = static_cast<uint8_t>(something ? awake : state.sleeper + 1);
        return visit(state);
      }
      case rest:
        state.expected = now;
        state.sleeper = (now & state_mask) == asleep ? wait : awake;
        return visit(state);
      case wait:
        if (!drained) return;  // the fence that is part of the system call
        state.sleeper =
            !rules_.recheck_in_kernel || state.memory[word] == state.expected ? sleeping : awake;
        return visit(state);
      case sleeping:
        if (state.wakes_for_nothing++ > 0) return;
        state.sleeper = awake;
        return visit(state);
      case awake:
        if (!store(state, sleepers_queue, word, now & ~state_mask)) return;
        state.expected = 0;
        state.sleeper = drowse;
        return visit(state);
    }
  }

  void step_bringer(State state, uint8_t who) {
    auto& bringer = state.bringer[who];
    if (bringer.at == dead || (bringer.at == publish && bringer.brought == brings)) return;
    State death = state;
    death.bringer[who] = {.at = dead, .value = 0, .rung = 0, .brought = 0};
    visit(death);
    const bool drained = state.queues[who].count == 0;
    switch (bringer.at) {
      case publish:
        if (!store(state, who, who, static_cast<uint8_t>(bringer.brought + 1))) return;
        bringer.at = bringers_fence;
        return visit(state);
      case bringers_fence:
        if (rules_.fence_of_bringer && !drained) return;
        bringer.at = read;
        return visit(state);
      case read:
        bringer.value = load(state, who, word);
        bringer.at = ring;
        if ((bringer.value & state_mask) == 0 || is_rung(bringer.value, bringer.rung)) {
          finish(bringer);
        }
        return visit(state);
      case ring:
        bringer.rung = rung_word(bringer.value, who);
        if (rules_.ring_changes_word && !store(state, who, word, bringer.rung)) return;
        bringer.at = wake;
        return visit(state);
      case wake:
        if (!drained) return;  // the fence that is part of the system call
        if (state.sleeper == sleeping) state.sleeper = awake;
        finish(bringer);
        return visit(state);
    }
  }
  template <class Some>
  static void finish(Some& bringer) {
    ++bringer.brought;
    bringer.value = 0;
    bringer.at = publish;
  }

  const Rules rules_;
  Explored<State> explored_;
};

bool misses_something(const Rules& rules) {
  Explorer explorer(rules);
  const bool misses = explorer.misses_something();
  INFO("states " << explorer.states());
  CHECK((misses || explorer.states() > 100'000));
  return misses;
}

TEST_CASE("if a living bringer has brought something, its sleeper sees it or is woken") {
  CHECK_FALSE(misses_something({}));
}

TEST_CASE("each step of the bell is needed: without it, a sleeper misses something") {
  CHECK(misses_something({.fence_of_sleeper = false}));
  CHECK(misses_something({.fence_of_bringer = false}));
  CHECK(misses_something({.ring_changes_word = false}));
  CHECK(misses_something({.recheck_in_kernel = false}));
  CHECK(misses_something({.trust = Trust::anybody}));
}

// The ring of a dead bringer, for this very sleep or late for the next one, would look like the own
// ring.
TEST_CASE("the word must name the thread that rang, not the sleep that it ended") {
  CHECK(misses_something({.trust = Trust::own_sleep}));
}

}  // namespace
}  // namespace urma::test::bell
