// SPDX-License-Identifier: Apache-2.0
// Threads::automatic (engine/keeper.h) in every order of its steps: the service thread; an
// application that polls, waits, hands over and finally stops; and a peer that brings messages.
// Each message must be seen by a pass. Loads and stores take effect immediately here; bell_test.cc
// covers late ones.

#include <cstdint>

#include "tests/catch.h"
#include "tests/exhaustive/explored.h"

namespace urma::test::hand_over {
namespace {

struct Rules {
  bool timer_when_leaving =
      true;  // a thread that slept at the descriptors sets the timer of the service thread
  bool look_before_rest = true;  // looks once more after it has announced that it sleeps
  bool timer_when_watching = true;
};

enum Service : uint8_t {
  serve,
  watch,
  set_timer,
  timer,
  check,
  take_over,
  pass,
  claim,
  say,
  look,
  keeps,
  rest,
  sleeping,
  up,
  leave
};
enum Application : uint8_t {
  free,
  polls,
  wake_then_poll,
  passes,
  wake_then_pass,
  claims,
  says,
  looks,
  rests,
  sleeps,
  is_up,
  leaves,
  sets_timer
};
enum Word : uint8_t { awake, drowsy, rung };

constexpr uint8_t messages = 2;
constexpr uint8_t calls = 3;

struct State {
  uint8_t service;
  uint8_t noted;  // by the service thread: how many passes were polled
  uint8_t application;
  uint8_t calls_made;
  uint8_t published;
  uint8_t to_ring;  // the peer has published, and has not looked at the word yet
  uint8_t seen;
  uint8_t service_keeps;
  uint8_t at_descriptors;
  uint8_t asleep;
  uint8_t word;
  uint8_t timer_fires;
  uint8_t polled;
};

class Explorer {
 public:
  explicit Explorer(const Rules& rules) : rules_(rules) {}

  bool misses_something() {
    visit(State{});
    while (!explored_.done()) {
      const State state = explored_.take();
      moved_ = false;
      step_service(state);
      step_application(state);
      step_peer(state);
      if (!moved_ && state.seen != state.published) return true;
    }
    return false;
  }
  size_t states() const { return explored_.states(); }

 private:
  void visit(const State& state) {
    moved_ = true;
    explored_.visit(state);
  }
  void service_goes(State state, uint8_t to) {
    state.service = to;
    visit(state);
  }
  void application_goes(State state, uint8_t to) {
    state.application = to;
    visit(state);
  }

  static void ring(State& state) {
    if (state.word != drowsy) return;
    state.word = rung;
    if (state.service == sleeping) state.service = up;
    if (state.application == sleeps) state.application = is_up;
  }
  // Does what Waker::wake does.
  static void wake(State& state) {
    if (state.asleep == 0) return;
    state.asleep = 0;
    ring(state);
  }

  // Does a step of ServiceThread::serve and watch, and of DescriptorSleep::sleep_for.
  void step_service(State state) {
    switch (state.service) {
      case serve:
        return service_goes(state, state.service_keeps != 0 ? pass : watch);
      case watch:
        state.noted = state.polled;
        return service_goes(state, set_timer);
      case set_timer:
        state.timer_fires = rules_.timer_when_watching;
        return service_goes(state, timer);
      case timer:
        if (state.timer_fires == 0) return;
        state.timer_fires = 0;
        return service_goes(state, check);
      case check:
        if (state.service_keeps != 0) return service_goes(state, serve);
        if (state.at_descriptors != 0) return service_goes(state, timer);
        if (state.polled == state.noted) return service_goes(state, take_over);
        state.noted = state.polled;
        return service_goes(state, set_timer);
      case take_over:
        state.service_keeps = 1;
        return service_goes(state, serve);
      case pass:
        state.seen = state.published;
        return service_goes(state, claim);
      case claim:
        if (state.at_descriptors != 0) return service_goes(state, serve);
        state.at_descriptors = 1;
        return service_goes(state, say);
      case say:
        state.asleep = 1;
        state.word = drowsy;
        return service_goes(state, rules_.look_before_rest ? look : keeps);
      case look: {
        const bool nothing = state.seen == state.published;
        state.seen = state.published;
        return service_goes(state, nothing ? keeps : up);
      }
      case keeps:
        return service_goes(state, state.service_keeps != 0 ? rest : up);
      case rest:
        return service_goes(state, state.word == drowsy ? sleeping : up);
      case sleeping:
        return;
      case up:
        state.word = awake;
        state.asleep = 0;
        return service_goes(state, leave);
      case leave:
        state.at_descriptors = 0;
        return service_goes(state, serve);
    }
  }

  // Does a step of Runner::look, Waiting::run_passes and Keeper::hand_over.
  void step_application(State state) {
    switch (state.application) {
      case free:
        if (state.calls_made == calls) return;
        ++state.calls_made;
        application_goes(state, polls);
        if (state.service_keeps == 0) {
          // These loads and stores are relaxed, as in the code: the service thread may have taken
          // over in between.
          State handed = state;
          handed.service_keeps = 1;
          return application_goes(handed, sets_timer), application_goes(state, passes);
        }
        state.service_keeps = 0;
        application_goes(state, wake_then_poll);
        return application_goes(state, wake_then_pass);
      case wake_then_poll:
        wake(state);
        return application_goes(state, polls);
      case polls:
        state.seen = state.published;
        ++state.polled;
        return application_goes(state, free);
      case wake_then_pass:
        wake(state);
        return application_goes(state, passes);
      case passes: {
        const bool nothing = state.seen == state.published;
        state.seen = state.published;
        ++state.polled;
        return application_goes(state, nothing ? claims : free);
      }
      case claims:
        // Then the application sleeps elsewhere, and only for a limited time.
        if (state.at_descriptors != 0) return application_goes(state, free);
        state.at_descriptors = 1;
        return application_goes(state, says);
      case says:
        state.asleep = 1;
        state.word = drowsy;
        return application_goes(state, rules_.look_before_rest ? looks : rests);
      case looks: {
        const bool nothing = state.seen == state.published;
        state.seen = state.published;
        return application_goes(state, nothing ? rests : is_up);
      }
      case rests:
        return application_goes(state, state.word == drowsy ? sleeps : is_up);
      case sleeps:
        return application_goes(state, is_up);  // the wait timed out
      case is_up:
        state.word = awake;
        state.asleep = 0;
        return application_goes(state, leaves);
      case leaves:
        state.at_descriptors = 0;
        return application_goes(state, rules_.timer_when_leaving ? sets_timer : free);
      case sets_timer:
        state.timer_fires = 1;
        return application_goes(state, free);
    }
  }

  void step_peer(State state) {
    if (state.to_ring != 0) {
      state.to_ring = 0;
      ring(state);
      return visit(state);
    }
    if (state.published == messages) return;
    ++state.published;
    state.to_ring = 1;
    visit(state);
  }

  const Rules rules_;
  bool moved_ = false;
  Explored<State> explored_;
};

TEST_CASE(
    "a message is seen, whichever thread is the keeper and whatever the application does last") {
  Explorer explorer(Rules{});
  CHECK_FALSE(explorer.misses_something());
  CHECK(explorer.states() > 5'000);
}

TEST_CASE("each step of the hand-over is needed: without it, a message is missed") {
  CHECK(Explorer({.timer_when_leaving = false}).misses_something());
  CHECK(Explorer({.look_before_rest = false}).misses_something());
  CHECK(Explorer({.timer_when_watching = false}).misses_something());
}

}  // namespace
}  // namespace urma::test::hand_over
