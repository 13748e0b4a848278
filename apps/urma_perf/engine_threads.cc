// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/engine_threads.h"

#include <algorithm>
#include <string>

#include "apps/common/failure.h"
#include "apps/urma_perf/clock.h"

namespace urma::apps::perf {
namespace {

// A thread that sleeps until something arrives looks this often whether it is to do something else.
constexpr Duration asleep_wait = std::chrono::milliseconds(20);

size_t engines_of(Device& device) {
  const SettingList settings = must(device.settings(), "the device's settings");
  const auto found = std::ranges::find(settings, "engines", &Setting::name);
  return found == settings.end() ? 1 : std::stoul(found->value);
}

Jfc queue_of(Device& device, uint32_t entries) {
  return must(device.jfc(entries), "the server's completion queue");
}

}  // namespace

// Queues that are made one after the other belong to one engine after the other.
EngineThreads::EngineThreads(Device& device, uint32_t entries, bool polls, Handle handle)
    : polls_(polls), handle_(std::move(handle)), first_(queue_of(device, entries)) {
  queues_.push_back(&first_);
  const size_t engines = engines_of(device);
  while (queues_.size() < engines) {
    others_.push_back(std::make_unique<One>(queue_of(device, entries)));
    queues_.push_back(&others_.back()->completions);
  }
  for (size_t i = 0; i < others_.size(); ++i)
    others_[i]->thread = std::thread([this, i] { run(i + 1, *others_[i]); });
}

EngineThreads::~EngineThreads() {
  {
    const std::lock_guard lock(changing_);
    stop_ = true;
  }
  changed_.notify_all();
  for (const auto& one : others_) one->thread.join();
}

void EngineThreads::set_pace(Pace pace) {
  if (pace == pace_) return;
  {
    const std::lock_guard lock(changing_);
    pace_ = pace;
  }
  changed_.notify_all();
}

void EngineThreads::catch_up() {
  if (pace_ == Pace::idle) return;
  const uint64_t request = ++requests_;
  const int64_t until = now() + second;
  for (const auto& one : others_) {
    while (one->caught_up < request && now() < until) std::this_thread::yield();
  }
}

std::vector<std::unique_lock<std::mutex>> EngineThreads::pause() {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& one : others_) locks.emplace_back(one->handling);
  return locks;
}

void EngineThreads::run(size_t queue, One& one) {
  Taker taker(polls_);
  while (!stop_.load(std::memory_order_relaxed)) {
    const Pace pace = pace_.load(std::memory_order_relaxed);
    if (pace == Pace::idle) {
      std::unique_lock lock(changing_);
      changed_.wait(lock, [&] { return stop_ || pace_ != Pace::idle; });
      continue;
    }
    const uint64_t request = requests_;
    const auto taken =
        pace == Pace::measured ? taker.take(one.completions) : one.completions.wait(asleep_wait);
    if (taken.empty()) {
      one.caught_up = request;
      continue;
    }
    const std::lock_guard lock(one.handling);
    for (const Completion& completion : taken) handle_(queue, completion);
  }
}

}  // namespace urma::apps::perf
