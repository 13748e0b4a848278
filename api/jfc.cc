// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"
#include "base/failed.h"

namespace urma {
namespace {

constexpr uint32_t deepest_jfc = 1 << 22;

// Makes the error for a device that has no thread which would make a descriptor readable.
Error not_served(const engine::Runner& runner, std::string_view call) {
  if (runner.simulated()) {
    return failed(Status::unsupported, call,
                  ": this device is simulated, and its time stands still while a thread sleeps")
        .fix("call wait() instead");
  }
  return failed(
             Status::unsupported, call,
             ": this device is run only by threads that poll, so no thread would run it while they "
             "sleep at a descriptor")
      .fix("open the device with Threads::automatic or served");
}

}  // namespace

size_t CompletionSource::poll(std::span<Completion> out) {
  if (!runner->takes_fast_path()) [[unlikely]]
    return take_slowly(out);
  return take(out);
}

// Polls in a forked child, or a device that is profiled.
size_t CompletionSource::take_slowly(std::span<Completion> out) {
  if (!runner->here()) {
    // Reports to a thread that polls in a forked child that no completions will come, and why.
    if (out.empty() || out.data() == nullptr) return 0;
    out[0] = {.status = Status::forked, .from = {}};
    return 1;
  }
  engine::CallTimer timer(*runner->profiler());
  const size_t count = take(out);
  timer.ended(count > 0 ? Stage::poll_found : Stage::poll_nothing);
  return count;
}

[[gnu::always_inline]] inline size_t CompletionSource::take(std::span<Completion> out) {
  bool closed = false;
  if (!jfc->ready()) {
    runner->look(*jfc);
    closed = runner->closed();
  }
  const size_t count = jfc->poll(out);
  if (runner->renames_peers()) [[unlikely]]
    runner->engines().peers().make_outer(*runner, out.first(count));
  if (count > 0 || !closed || out.empty() || out.data() == nullptr) return count;
  // No completions will follow. Each poll reports this, so that no thread waits forever.
  out[0] = {.status = Status::closed, .from = {}};
  return 1;
}

std::span<const Completion> CompletionSource::wait(Duration limit, std::span<Completion> out) {
  if (runner->here() && runner->profiler() != nullptr) {
    engine::CallTimer timer(*runner->profiler());
    runner->wait(*jfc, limit);
    timer.ended(Stage::wait);
  } else if (runner->here()) {
    runner->wait(*jfc, limit);
  }
  return out.first(poll(out));
}

Result<int> CompletionSource::fd(const std::shared_ptr<urma::jetty::Jfc>& kept) {
  return guarded("fd", [&]() -> Result<int> {
    // The descriptor is returned also after close, so that applications can remove it from an epoll
    // set.
    if (runner->here() && jfc->descriptor() >= 0) return jfc->descriptor();
    if (auto able = usable(*runner, "fd"); !able) return able.error();
    if (!runner->has_service()) return not_served(*runner, "fd");
    if (jfc->attached()) {
      return Error{Status::invalid_argument,
                   "fd: this queue is attached to a Jfce. Fix: wait at the fd() of the Jfce"};
    }
    if (runner->awaited().give_descriptor(kept)) return jfc->descriptor();
    return no_descriptor("fd");
  });
}

bool CompletionSource::arm(Wake wake) {
  if (!runner->here() || runner->closed() || !jfc->arm(wake == Wake::solicited)) return false;
  runner->hand_over();
  // Arming may have consumed the wake-up of a close.
  return !runner->closed();
}

Result<void> CompletionSource::attach(const std::shared_ptr<urma::jetty::Jfc>& kept,
                                      const std::shared_ptr<urma::jetty::Jfce>& events,
                                      uint64_t tag) {
  return guarded("attach", [&]() -> Result<void> {
    if (auto able = usable(*runner, "attach"); !able) return able.error();
    if (!runner->has_service()) return not_served(*runner, "attach");
    if (jfc->attached() || jfc->descriptor() >= 0) {
      return failed(Status::invalid_argument, "attach: this queue has ",
                    jfc->attached() ? "a Jfce already" : "a descriptor of its own")
          .fix(
              "attach each queue once, before its fd() is called; Jetties that share a Jfc share "
              "its Jfce");
    }
    runner->awaited().attach(kept, events, tag);
    return {};
  });
}

Jfc::Jfc(std::unique_ptr<State> state) : state_(std::move(state)) {}
Jfc::Jfc(Jfc&&) noexcept = default;
Jfc& Jfc::operator=(Jfc&&) noexcept = default;
Jfc::~Jfc() = default;

size_t Jfc::poll(std::span<Completion> out) {
  return state_ ? state_->source.poll(out) : poll_moved(out);
}
std::span<const Completion> Jfc::wait(Duration limit) {
  if (!state_) return {&end_of_moved, 1};
  return state_->source.wait(limit, state_->taken);
}
Result<int> Jfc::fd() {
  if (!state_) return moved_from("fd");
  return state_->source.fd(state_->jfc);
}
bool Jfc::arm(Wake wake) { return state_ && state_->source.arm(wake); }

Result<Jfc> Device::jfc(uint32_t depth) {
  if (auto able = usable(state_, "jfc"); !able) return able.error();
  if (depth == 0 || depth > deepest_jfc) {
    return failed(Status::invalid_argument, "jfc: the depth ", depth, " is out of range")
        .fix("choose 1 to ", deepest_jfc);
  }
  return guarded("jfc", [&]() -> Result<Jfc> {
    auto state = std::make_unique<Jfc::State>();
    state->source.runner = state_->engines().next();
    state->jfc = std::make_shared<urma::jetty::Jfc>(depth);
    state->source.jfc = state->jfc.get();
    return Jfc(std::move(state));
  });
}

}  // namespace urma
