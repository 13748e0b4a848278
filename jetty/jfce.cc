// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfce.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/above_standard.h"

namespace urma::jetty {

Jfce::~Jfce() {
  // The queues own the channel, so all of them have left.
  take_notified();
  while (taken_ != nullptr) release(*std::exchange(taken_, taken_->next));
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Jfce::make_descriptor() {
  const int made = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (made < 0) return false;
  descriptor_ = made;
  not_inherited_ = NotInherited(made);
  return true;
}

void Jfce::notify(Member& member) {
  if (member.listed.exchange(true, std::memory_order_acq_rel)) return;
  member.kept.fetch_add(1, std::memory_order_relaxed);
  Member* first = notified_.load(std::memory_order_relaxed);
  do {
    member.next = first;
  } while (!notified_.compare_exchange_weak(first, &member, std::memory_order_release,
                                            std::memory_order_relaxed));
  if (first == nullptr) ring();
}

void Jfce::ring() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void Jfce::leave(Member& member) {
  member.gone.store(true, std::memory_order_relaxed);
  release(member);
}

void Jfce::release(Member& member) {
  if (member.kept.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &member;
}

// Reads the descriptor first: a notification in between makes it readable once more, and is taken
// now.
void Jfce::take_notified() {
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_, &rings, sizeof rings);
  Member** last = &taken_;
  while (*last != nullptr) last = &(*last)->next;
  Member* newest = notified_.exchange(nullptr, std::memory_order_acquire);
  Member* oldest = nullptr;
  while (newest != nullptr) {
    Member* const older = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, older);
  }
  *last = oldest;
}

size_t Jfce::take(std::span<uint64_t> out) {
  size_t count = 0;
  while (count < out.size()) {
    if (taken_ == nullptr) take_notified();
    if (taken_ == nullptr) break;
    Member& member = *std::exchange(taken_, taken_->next);
    // After this the queue may notify again. A thread that polls the queue now finds the
    // completions of earlier notifications.
    member.listed.exchange(false, std::memory_order_acq_rel);
    if (!member.gone.load(std::memory_order_relaxed)) out[count++] = member.tag;
    release(member);
  }
  // The caller may sleep before it takes the remaining tags.
  if (taken_ != nullptr) ring();
  return count;
}

void Jfce::await(Duration limit) const {
  pollfd one{descriptor_, POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec left{static_cast<time_t>(seconds.count()),
                      static_cast<long>((limit - seconds).count())};
  ::ppoll(&one, 1, &left, nullptr);
}

}  // namespace urma::jetty
