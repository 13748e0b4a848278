// SPDX-License-Identifier: Apache-2.0
#include "umdk/jfce.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>

#include "base/clock.h"
#include "umdk/jfc.h"

namespace urma::umdk {

Jfce::Jfce(Context& context, urma::Jfce made)
    : urma_jfce_t{}, events_(std::move(made)), raised_(OwnDescriptor::event()) {
  if (raised_) both_ = OwnDescriptor::either(events_.fd(), raised_.number());
  if (!both_) throw std::bad_alloc();
  urma_ctx = &context;
  fd = both_.number();
  ref.atomic_cnt = 1;
}

void Jfce::attach(Jfc& jfc) {
  const SpinLock::Held held(lock_, true);
  due_.reserve(attached_.size() + 1);
  attached_.push_back(&jfc);
  ref.atomic_cnt.fetch_add(1);
}

void Jfce::detach(Jfc& jfc) {
  const SpinLock::Held held(lock_, true);
  std::erase(attached_, &jfc);
  std::erase(due_, &jfc);
  if (due_.empty()) raised_.quiet();
  ref.atomic_cnt.fetch_sub(1);
}

Result<void> Jfce::add(urma::Jfc& queue, Jfc& jfc) {
  const SpinLock::Held held(lock_, true);
  return events_.attach(queue, reinterpret_cast<uintptr_t>(&jfc));
}

void Jfce::raise(Jfc& jfc) {
  const SpinLock::Held held(lock_, true);
  if (std::ranges::find(due_, &jfc) == due_.end()) due_.push_back(&jfc);
  raised_.ring();
}

uint32_t Jfce::take(urma_jfc_t** out, uint32_t most) {
  const SpinLock::Held held(lock_, true);
  uint32_t count = 0;
  while (count < most && !due_.empty()) {
    Jfc* const jfc = due_.front();
    due_.erase(due_.begin());
    if (jfc->take_armed()) out[count++] = jfc;
  }
  if (due_.empty()) raised_.quiet();
  std::array<uint64_t, 16> tags;
  while (count < most) {
    const size_t wanted = std::min<size_t>(tags.size(), most - count);
    const size_t taken = events_.take(std::span(tags).first(wanted));
    for (const uint64_t tag : std::span(tags).first(taken)) {
      // A queue may be ready that was deleted meanwhile; several of one JFC are one event, and the
      // others of it are still armed after that.
      auto* const jfc = reinterpret_cast<Jfc*>(tag);
      const bool lives = std::ranges::find(attached_, jfc) != attached_.end();
      if (!lives || !jfc->take_armed()) continue;
      if (std::find(out, out + count, jfc) == out + count) out[count++] = jfc;
    }
    if (taken < wanted) break;
  }
  return count;
}

int Jfce::wait(urma_jfc_t** out, uint32_t most, int limit_ms) {
  const Time until = read_clock() + std::chrono::milliseconds(limit_ms);
  const int before = errno;
  for (;;) {
    const uint32_t count = take(out, most);
    errno = before;
    if (count > 0) return static_cast<int>(count);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - read_clock()).count();
    if (limit_ms >= 0 && left <= 0) return 0;
    pollfd readable{both_.number(), POLLIN, 0};
    if (poll(&readable, 1, limit_ms < 0 ? -1 : static_cast<int>(left)) < 0) {
      constexpr int interrupted = 512;  // as UMDK reports it
      if (errno == EINTR) errno = interrupted;
      return errno == interrupted ? 0 : -1;
    }
  }
}

}  // namespace urma::umdk
