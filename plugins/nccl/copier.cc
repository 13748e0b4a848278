// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/copier.h"

#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/signals_blocked.h"

namespace urma::nccl {
namespace {

using namespace std::chrono_literals;

// Smaller copies take less time than handing them over.
constexpr size_t least_bytes = 64 << 10;
// How long the thread looks for further copies before it sleeps: waking it takes that long.
constexpr Duration patience = 50us;

}  // namespace

Copier::Copier(bool wanted) : process_(getpid()) {
  if (!wanted) return;
  const SignalsBlocked blocked;  // signals are for the threads of the application
  thread_ = std::thread([this] { run(); });
}

Copier::~Copier() {
  if (!thread_.joinable()) return;
  ended_.store(true, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_one();
  thread_.join();
}

Copier::Job* Copier::start(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes < least_bytes || !thread_.joinable()) return nullptr;
  for (Job& job : jobs_) {
    auto expected = Job::State::unused;
    if (job.state.load(std::memory_order_relaxed) != expected) continue;
    if (!job.state.compare_exchange_strong(expected, Job::State::filling,
                                           std::memory_order_acquire)) {
      continue;
    }
    job.to = to;
    job.from = from;
    job.bytes = bytes;
    job.state.store(Job::State::ready, std::memory_order_release);
    started_.fetch_add(1, std::memory_order_release);
    started_.notify_one();
    return &job;
  }
  return nullptr;
}

bool Copier::take(Job& job) {
  if (job.state.load(std::memory_order_acquire) != Job::State::done) return false;
  job.state.store(Job::State::unused, std::memory_order_release);
  return true;
}

bool Copier::has_thread() const { return thread_.joinable() && process_ == getpid(); }

void Copier::finish(Job& job) const {
  if (!has_thread()) return;
  while (!take(job)) std::this_thread::yield();
}

void Copier::drain() const {
  if (!has_thread()) return;
  for (const Job& job : jobs_) {
    while (job.state.load(std::memory_order_acquire) == Job::State::ready) {
      std::this_thread::yield();
    }
  }
}

void Copier::run() {
  Time since = read_clock();
  while (!ended_.load(std::memory_order_relaxed)) {
    const uint32_t seen = started_.load(std::memory_order_acquire);
    if (run_jobs()) {
      since = read_clock();
    } else if (read_clock() - since > patience) {
      started_.wait(seen, std::memory_order_acquire);
      since = read_clock();
    }
  }
}

bool Copier::run_jobs() {
  bool some = false;
  for (Job& job : jobs_) {
    if (job.state.load(std::memory_order_acquire) != Job::State::ready) continue;
    std::memcpy(job.to, job.from, job.bytes);
    job.state.store(Job::State::done, std::memory_order_release);
    some = true;
  }
  return some;
}

}  // namespace urma::nccl
