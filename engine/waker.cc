// SPDX-License-Identifier: Apache-2.0
#include "engine/waker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/above_standard.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/failed.h"

namespace urma::engine {
namespace {

// A port that cannot wake a thread is polled this often.
constexpr Duration port_patience = std::chrono::microseconds(100);
// A port that has to be armed may not signal that its link or its peer has changed. Each pass
// looks.
constexpr Duration armed_patience = std::chrono::milliseconds(100);
// A bell in a window whose file was truncated is never rung again, so its sleeper wakes this often.
constexpr Duration bell_patience = std::chrono::seconds(1);

}  // namespace

Waker::~Waker() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> Waker::start() {
  descriptor_ = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (descriptor_ >= 0) return {};
  return failed(Status::no_resources, "open: cannot make an eventfd: ", std::strerror(errno))
      .fix("close descriptors, or allow more (ulimit -n)");
}

void Waker::wake() {
  if (clock_ != nullptr) return clock_->poke(driven_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_relaxed) || !asleep_.exchange(false)) return;
  if (bell_ != nullptr) return bell_->ring();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void Waker::drowse() {
  asleep_.store(true, std::memory_order_relaxed);
  if (bell_ != nullptr) return bell_->drowse();  // which fences
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Waker::rest(Time until) {
  if (bell_ == nullptr) return poll_descriptors(until);
  bell_->rest(std::min(until, read_clock() + bell_patience));
}

void Waker::awake() {
  if (bell_ != nullptr) bell_->awake();
  asleep_.store(false, std::memory_order_relaxed);
}

void Waker::poll_descriptors(Time until) {
  std::array<pollfd, 1 + drivers::PacketPort::most_descriptors> descriptors;
  descriptors[0] = {descriptor_, POLLIN, 0};
  URMA_ASSERT(port_.descriptors().size() < descriptors.size(), "a port has few descriptors");
  nfds_t used = 1;
  for (const int port : port_.descriptors()) descriptors[used++] = {port, POLLIN, 0};
  // A port without a descriptor must be polled.
  if (used == 1) until = std::min(until, read_clock() + port_patience);
  if (arms_) until = std::min(until, read_clock() + armed_patience);
  timespec timeout{};
  const timespec* patience = nullptr;
  if (until != never) {
    const Duration left = std::max(until - read_clock(), Duration{});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timeout = {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
    patience = &timeout;
  }
  ppoll(descriptors.data(), used, patience, nullptr);
  if (descriptors[0].revents == 0) return;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
}

}  // namespace urma::engine
