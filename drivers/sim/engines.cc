// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/engines.h"

#include <algorithm>

namespace urma::drivers::sim {
namespace {

// The simulated duration of a pass, so that the clock advances even if an engine always has work.
constexpr Duration pass_cost(200);

}  // namespace

uint32_t Engines::add(Driven& driven, Time now) {
  if (const auto known = index_of_.find(&driven); known != index_of_.end()) return known->second;
  const auto vacant = std::ranges::find(engines_, nullptr, &Engine::driven);
  const auto index = static_cast<uint32_t>(vacant - engines_.begin());
  if (vacant == engines_.end()) engines_.emplace_back();
  engines_[index] = {.driven = &driven, .next = now};
  index_of_.emplace(&driven, index);
  plan(index);
  return index;
}

uint32_t Engines::remove(Driven& driven) {
  const auto found = index_of_.find(&driven);
  if (found == index_of_.end()) return none;
  const uint32_t index = found->second;
  wakes_.set(index, never);
  engines_[index] = {};
  index_of_.erase(found);
  return index;
}

void Engines::allow_lateness(uint32_t engine, Duration most) {
  engines_[engine].most_late = std::max(engines_[engine].most_late, most);
}

void Engines::poke(Driven& driven, Time now) {
  const auto found = index_of_.find(&driven);
  if (found == index_of_.end()) return;
  Engine& engine = engines_[found->second];
  if (engine.next <= now) return;
  engine.next = now;
  plan(found->second);
}

void Engines::wake(uint32_t index, Time now) {
  Engine& engine = engines_[index];
  // Several packets wake it once.
  if (engine.next <= now + engine.most_late) return;
  engine.next = now + lateness_of(engine);
  plan(index);
}

void Engines::stop(uint32_t engine, bool stopped) {
  engines_[engine].stopped = stopped;
  plan(engine);
}

void Engines::run_next(Time now) {
  const uint32_t index = wakes_.first();
  Driven* const driven = engines_[index].driven;
  const Time wanted = driven->pass(now);
  // The pass may have removed the engine.
  Engine& engine = engines_[index];
  if (engine.driven != driven) return;
  // An engine that has more to do keeps its processor.
  const bool sleeps = wanted > now + pass_cost && wanted != never;
  engine.next = std::max(wanted, now + pass_cost);
  if (sleeps) engine.next += lateness_of(engine);
  plan(index);
}

void Engines::plan(uint32_t engine) {
  wakes_.set(engine, engines_[engine].stopped ? never : engines_[engine].next);
}

Duration Engines::lateness_of(const Engine& engine) {
  if (engine.most_late == Duration{}) return {};
  return Duration(
      static_cast<int64_t>(prng_.below(static_cast<uint64_t>(engine.most_late.count()))));
}

}  // namespace urma::drivers::sim
