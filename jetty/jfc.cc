// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfc.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <utility>

#include "base/above_standard.h"
#include "base/futex.h"
#include "jetty/queues.h"

namespace urma::jetty {
namespace {

constexpr uint32_t not_sleeping = 0;
constexpr uint32_t sleeping_here = 1;
constexpr uint32_t sleeping_elsewhere = 2;
constexpr uint32_t sleeping_at_descriptor = 3;
constexpr uint32_t sleeping_till_solicited = 4;  // at the descriptor, until a solicited completion

}  // namespace

Jfc::Jfc(uint32_t depth)
    : LazyBlock(sizeof(Lines) + std::bit_ceil<size_t>(depth) * sizeof(Entry)),
      mask_(std::bit_ceil(depth) - 1),
      depth_log2_(static_cast<uint32_t>(std::countr_zero(std::bit_ceil(depth)))) {
  static_assert(sizeof(Jfc) <= 32);
}

Jfc::~Jfc() {
  if (touched()) release_retired(UINT64_MAX);
  if (!seldom_) return;
  seldom_->not_inherited = NotInherited();
  if (seldom_->descriptor >= 0) ::close(seldom_->descriptor);
  if (seldom_->member != nullptr) Jfce::leave(*seldom_->member);
}

bool Jfc::reserve(uint32_t entries) {
  uint32_t reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (entries > depth() - reserved) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + entries, std::memory_order_acquire,
                                            std::memory_order_relaxed));
  return true;
}

void Jfc::retire(std::shared_ptr<Queues> queues) {
  Queues& last = *queues;
  Queues::Retirement& retirement = last.retire();
  touch();
  Lines& own = lines();
  retirement.until = own.written;
  retirement.self = std::move(queues);
  retirement.next = own.retired.load(std::memory_order_relaxed);
  while (!own.retired.compare_exchange_weak(retirement.next, &last, std::memory_order_release,
                                            std::memory_order_relaxed)) {
  }
}

// Releases the retired queues whose entries all lie before `polled`.
void Jfc::release_retired(uint64_t polled) {
  Lines& own = lines();
  Queues* taken = own.retired.exchange(nullptr, std::memory_order_acquire);
  while (taken != nullptr) {
    Queues* const next = std::exchange(taken->retirement().next, own.releasing);
    own.releasing = std::exchange(taken, next);
  }
  for (Queues** link = &own.releasing; *link != nullptr;) {
    Queues::Retirement& retirement = (*link)->retirement();
    if (polled < retirement.until) {
      link = &retirement.next;
      continue;
    }
    Queues& over = **link;
    unreserve(over.entries());
    *link = retirement.next;
    // Usually this is the last reference, and the queues are destroyed here.
    const std::shared_ptr<Queues> let_go = over.end_retirement();
  }
}

// `urgent`: a solicited or failed completion was pushed.
bool Jfc::wake_sleeper(bool urgent) {
  Lines& own = lines();
  const uint32_t where = own.sleeping.load(std::memory_order_relaxed);
  if (where == not_sleeping || (where == sleeping_till_solicited && !urgent)) return false;
  // The thread may have woken by itself meanwhile, and sleep elsewhere now. Acquire order makes its
  // descriptor visible here.
  const uint32_t sleeping = own.sleeping.exchange(not_sleeping, std::memory_order_acquire);
  if (sleeping == sleeping_here) futex_wake_all(own.sleeping);
  // The descriptor is rung while the engine token is held, because without the token the Jfc may be
  // destroyed. A sleeping thread is woken only once.
  if (sleeping == sleeping_at_descriptor || sleeping == sleeping_till_solicited) ring();
  return sleeping == sleeping_elsewhere;
}

size_t Jfc::poll(std::span<Completion> out) {
  Lines& own = lines();
  const size_t most = out.data() != nullptr ? out.size() : 0;
  size_t count = 0;
  for (uint64_t at = own.read; count < most; ++count) {
    const Entry& next = entry(at);
    if (next.mark.load(std::memory_order_acquire) != lap(at)) break;
    out[count] = next.completion;
    Queues* const queues = next.queues;
    const uint16_t lease = next.lease;
    const bool arrival = next.completion.operation == Operation::receive;
    own.read = ++at;
    // After this the entry may be overwritten, because its permit has been given back.
    if (queues != nullptr) queues->polled(arrival, lease);
  }
  if (own.releasing != nullptr || own.retired.load(std::memory_order_relaxed) != nullptr) {
    release_retired(own.read);
  }
  return count;
}

void Jfc::sleep(Duration limit) {
  touch();
  lines().sleeping.store(sleeping_here, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) futex_wait(lines().sleeping, sleeping_here, limit);
  awake();
}

bool Jfc::sleep_elsewhere() {
  touch();
  lines().sleeping.store(sleeping_elsewhere, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  awake();
  return false;
}

// ---- the descriptor

bool Jfc::make_descriptor() {
  Seldom& ours = seldom();
  if (ours.descriptor >= 0) return true;
  const int made = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (made < 0) return false;
  ours.descriptor = made;
  ours.not_inherited = NotInherited(made);
  return true;
}

Jfc::Seldom& Jfc::seldom() {
  if (!seldom_) seldom_ = std::make_unique<Seldom>();
  return *seldom_;
}

void Jfc::attach(std::shared_ptr<Jfce> events, uint64_t tag) {
  Seldom& ours = seldom();
  auto member = std::make_unique<Jfce::Member>();
  member->tag = tag;
  ours.member = member.release();
  ours.events = std::move(events);
}

void Jfc::ring() const {
  if (attached()) return seldom_->events->notify(*seldom_->member);
  if (descriptor() < 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor(), &one, sizeof one);
}

// Reads the descriptor each time, not only after a ring that was noticed: a late ring would leave
// it readable while the queue is empty, and the waiting thread would spin.
bool Jfc::arm(bool solicited) {
  if (ready() || (descriptor() < 0 && !attached())) return false;
  if (!attached()) {
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor(), &rings, sizeof rings);
  }
  touch();
  lines().sleeping.store(solicited ? sleeping_till_solicited : sleeping_at_descriptor,
                         std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  awake();
  return false;
}

}  // namespace urma::jetty
