// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <cstring>

#include "api/handles.h"
#include "base/failed.h"

namespace urma {
namespace {

// Keeps the descriptor readable once the device is closed, so that a thread that sleeps at it wakes
// even if all events have been taken.
void ring_when_closed(const engine::Engines& engines) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < engines.count(); ++i) {
    if (!engines.at(i).closed()) return;  // it signals when it closes
  }
  engine::EventQueue& events = engines.at(0).events();
  if (events.descriptor() >= 0) events.ring();
}

// Takes the events of one engine.
size_t take_events(engine::Runner& runner, std::span<Event> out) {
  const size_t count = runner.events().take(out);
  // The ring has room now for the events that did not fit before.
  if (count > 0 && runner.events().full() && runner.open()) {
    runner.call([](engine::Engine& engine, Time now) {
      engine.events().hand_over(now);
      return true;
    });
  }
  return count;
}

}  // namespace

Error no_descriptor(std::string_view call) {
  return failed(Status::no_resources, call, ": cannot make an eventfd: ", std::strerror(errno))
      .fix("close descriptors, or allow more (ulimit -n)");
}

// ---- several queues

Jfce::Jfce(std::unique_ptr<State> state) : state_(std::move(state)) {}
Jfce::Jfce(Jfce&&) noexcept = default;
Jfce& Jfce::operator=(Jfce&&) noexcept = default;
Jfce::~Jfce() = default;

Result<Jfce> Device::jfce() {
  if (auto able = usable(state_, "jfce"); !able) return able.error();
  return guarded("jfce", [&]() -> Result<Jfce> {
    auto state = std::make_unique<Jfce::State>();
    state->runner = state_->runner;
    state->events = std::make_shared<urma::jetty::Jfce>();
    if (!state->events->make_descriptor()) return no_descriptor("jfce");
    return Jfce(std::move(state));
  });
}

namespace {

Error nothing_to_attach() {
  return {Status::invalid_argument,
          "attach: this queue was moved from. Fix: attach the object that it was moved to"};
}

}  // namespace

Result<void> Jfce::attach(Jetty& jetty, uint64_t tag) {
  if (!state_) return moved_from("attach");
  if (!jetty.state_) return guarded("attach", []() -> Result<void> { return nothing_to_attach(); });
  const auto kept = urma::jetty::Queues::jfc_of(jetty.state_->queues);
  return jetty.state_->source.attach(kept, state_->events, tag);
}
Result<void> Jfce::attach(Jfc& jfc, uint64_t tag) {
  if (!state_) return moved_from("attach");
  if (!jfc.state_) return guarded("attach", []() -> Result<void> { return nothing_to_attach(); });
  return jfc.state_->source.attach(jfc.state_->jfc, state_->events, tag);
}

int Jfce::fd() const { return state_ ? state_->events->descriptor() : -1; }

size_t Jfce::take(std::span<uint64_t> tags) {
  if (!state_ || tags.data() == nullptr || !state_->runner->here()) return 0;
  return state_->events->take(tags);
}

std::span<const uint64_t> Jfce::wait(Duration limit) {
  if (!state_) return {};
  size_t count = take(state_->taken);
  if (count == 0 && limit > Duration{} && state_->runner->here()) {
    state_->events->await(limit);
    count = take(state_->taken);
  }
  return std::span(state_->taken).first(count);
}

// ---- events

Result<int> Device::events_fd() {
  if (!state_) return moved_from("events_fd");
  return guarded("events_fd", [&]() -> Result<int> {
    engine::EventQueue& events = state_->runner->events();
    // The descriptor is returned also after close, so that applications can remove it from an epoll
    // set.
    if (state_->runner->here() && events.descriptor() >= 0) return events.descriptor();
    if (auto able = usable(state_, "events_fd"); !able) return able.error();
    if (!events.make_descriptor()) return no_descriptor("events_fd");
    state_->for_each_runner([&](engine::Runner& runner) {
      if (&runner.events() != &events) runner.events().share_descriptor(events);
    });
    ring_when_closed(state_->engines());
    return events.descriptor();
  });
}

size_t Device::events(std::span<Event> out) {
  if (out.empty() || out.data() == nullptr) return 0;
  if (!state_) {
    out[0] = {.kind = EventKind::closed};
    return 1;
  }
  if (!state_->runner->here()) return 0;
  bool closed = true;
  size_t count = 0;
  state_->runner->events().quieten();
  state_->for_each_runner([&](engine::Runner& runner) {
    closed = closed && runner.closed();
    const size_t more = take_events(runner, out.subspan(count));
    if (runner.renames_peers())
      runner.engines().peers().make_outer(runner, out.subspan(count, more));
    count += more;
  });
  ring_when_closed(state_->engines());
  // The others may have events for which there was no room.
  if (state_->engines().count() > 1 && count == out.size() &&
      state_->runner->events().descriptor() >= 0)
    state_->runner->events().ring();
  if (count > 0 || !closed) return count;
  out[0] = {.kind = EventKind::closed};
  return 1;
}

}  // namespace urma
