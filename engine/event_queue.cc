// SPDX-License-Identifier: Apache-2.0
#include "engine/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/above_standard.h"

namespace urma::engine {
namespace {

bool alike(const Event& a, const Event& b) {
  return a.kind == b.kind && a.peer == b.peer && a.jetty == b.jetty && a.path == b.path &&
         a.segment == b.segment;
}

}  // namespace

EventQueue::~EventQueue() {
  not_inherited_ = NotInherited();
  if (descriptor() >= 0 && !shared_) ::close(descriptor());
}

// Counts the event together with an earlier one that is alike only if no other event of the same
// peer came between them, so that the order of a peer's events is kept.
void EventQueue::raise(const Event& event) {
  if (!kinds_.has(event.kind)) return;
  for (uint32_t i = gathered_count_; i-- > 0;) {
    Event& earlier = gathered_[i];
    if (alike(earlier, event)) {
      earlier.count += event.count;
      earlier.status = event.status;
      return;
    }
    if (earlier.peer == event.peer) break;
  }
  if (gathered_count_ < gathered_.size()) {
    gathered_[gathered_count_++] = event;
  } else if (kinds_.has(EventKind::missed)) {
    missed_ += event.count;
  }
}

void EventQueue::forget(JettyId jetty) {
  const auto end = gathered_.begin() + gathered_count_;
  const auto of_jetty = [&](const Event& event) {
    return event.kind == EventKind::jetty_error && event.jetty == jetty;
  };
  gathered_count_ =
      static_cast<uint32_t>(std::remove_if(gathered_.begin(), end, of_jetty) - gathered_.begin());
}

void EventQueue::hand_over(Time now) {
  const uint32_t written = written_.load(std::memory_order_relaxed);
  const uint32_t room = capacity - (written - taken_.load(std::memory_order_acquire));
  uint32_t moved = std::min(gathered_count_, room);
  for (uint32_t i = 0; i < moved; ++i) ring_[(written + i) % capacity] = gathered_[i];
  std::copy(gathered_.begin() + moved, gathered_.begin() + gathered_count_, gathered_.begin());
  gathered_count_ -= moved;
  if (missed_ > 0 && moved < room) {
    ring_[(written + moved++) % capacity] = {.kind = EventKind::missed, .count = missed_};
    missed_ = 0;
  }
  full_.store(gathered_count_ > 0, std::memory_order_relaxed);
  not_before_ = now + apart;
  if (moved == 0) return;
  written_.store(written + moved, std::memory_order_seq_cst);
  if (descriptor_.load(std::memory_order_seq_cst) >= 0) ring();
}

void EventQueue::quieten() {
  if (descriptor() < 0) return;
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor(), &rings, sizeof rings);
}

size_t EventQueue::take(std::span<Event> out) {
  const uint32_t taken = taken_.load(std::memory_order_relaxed);
  const uint32_t there = written_.load(std::memory_order_acquire) - taken;
  const auto count = static_cast<uint32_t>(std::min<size_t>(there, out.size()));
  for (uint32_t i = 0; i < count; ++i) out[i] = ring_[(taken + i) % capacity];
  taken_.store(taken + count, std::memory_order_release);
  if (count < there && descriptor() >= 0) ring();
  return count;
}

bool EventQueue::make_descriptor() {
  if (descriptor() >= 0) return true;
  const int made = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (made < 0) return false;
  not_inherited_ = NotInherited(made);
  // Either the engine sees the descriptor, or this thread sees the events written before.
  descriptor_.store(made, std::memory_order_seq_cst);
  if (written_.load(std::memory_order_seq_cst) != taken_.load(std::memory_order_relaxed)) ring();
  return true;
}

void EventQueue::share_descriptor(const EventQueue& other) {
  if (descriptor() >= 0) return;
  shared_ = true;
  descriptor_.store(other.descriptor(), std::memory_order_seq_cst);
  if (written_.load(std::memory_order_seq_cst) != taken_.load(std::memory_order_relaxed)) ring();
}

void EventQueue::ring() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor(), &one, sizeof one);
}

}  // namespace urma::engine
