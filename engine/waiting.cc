// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/pollers.h"
#include "engine/spinning.h"

namespace urma::engine {
namespace {

// If another thread of the application runs the passes, it may stop doing so, so a waiting thread
// checks again after this time.
constexpr Duration served_patience = std::chrono::milliseconds(1);
// How long one pass of a waiting thread takes in a simulation of an inlined device.
constexpr Duration simulated_look = std::chrono::microseconds(1);

}  // namespace

void Waiting::be_served(jetty::Jfc& jfc, Time until) {
  while (!jfc.ready() && !state_.closed()) {
    const Duration left = until == never ? OpenState::patience : until - read_clock();
    if (left <= Duration{}) return;
    jfc.sleep(std::min(left, OpenState::patience));
  }
}

void Waiting::run_passes(jetty::Jfc& jfc, Time until, bool has_service) {
  using Ran = Passes::Ran;
  if (keeper_.service_keeps()) keeper_.recall();
  jfc.awake();  // its descriptor need not signal completions that this thread causes itself
  Time idle_since = never;
  const bool may = may_spin(spinning_.fetch_add(1, std::memory_order_relaxed) + 1);
  const bool polled = descriptors_.port_is_polled();
  const Duration spin = polled ? spin_before_nap : may ? spin_before_sleep : Duration{};
  while (!jfc.ready() && !state_.closed()) {
    const Time begun = read_clock();
    if (begun >= until) break;
    const Ran ran = passes_.try_pass(&jfc);
    // The token's holder runs passes for this thread, too, but may stop, or only copies its works.
    if (ran == Ran::by_another) jfc.sleep(served_patience);
    if (ran == Ran::busy) idle_since = never;
    if (ran != Ran::idle) continue;
    const Time now = read_clock();
    idle_since = std::min(idle_since, now);
    if (polled) Pollers::give_way();
    if (now - idle_since >= spin) sleep_somewhere(jfc, until, has_service);
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
}

// One thread sleeps at the descriptors. The others sleep at their JFCs, and are woken by that
// thread or by the service thread.
void Waiting::sleep_somewhere(jetty::Jfc& jfc, Time until, bool has_service) {
  const Time now = read_clock();
  if (!descriptors_.occupy()) {
    const Duration patience = has_service ? OpenState::patience : served_patience;
    return jfc.sleep(std::min(patience, until - now));
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  descriptors_.sleep_until_alarm(&jfc, std::min(until, now + OpenState::patience));
  spinning_.fetch_add(1, std::memory_order_relaxed);
  descriptors_.leave();
  keeper_.left_descriptors();
}

void Waiting::simulate(jetty::Jfc& jfc, Time until, drivers::VirtualClock& clock, bool inlined) {
  while (!jfc.ready() && !state_.closed() && clock.now() < until) {
    Time next = until;
    if (inlined) {
      passes_.try_pass(nullptr);
      if (jfc.ready()) return;
      // No other thread runs this engine's timers. An arrival ends the step anyway.
      next = std::min(std::max(passes_.alarm(), clock.now() + simulated_look), until);
    }
    if (!clock.step(next) && next == until) return;
  }
}

}  // namespace urma::engine
