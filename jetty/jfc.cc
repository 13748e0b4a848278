#include "jetty/jfc.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <utility>

#include "jetty/queues.h"
#include "urma/base/futex.h"

namespace urma::jetty {
namespace {

constexpr uint32_t not_sleeping = 0;
constexpr uint32_t sleeping_here = 1;
constexpr uint32_t sleeping_elsewhere = 2;
constexpr uint32_t sleeping_at_descriptor = 3;
constexpr uint32_t sleeping_till_solicited = 4;  // there, too

}  // namespace

Jfc::Jfc(uint32_t depth)
    : entries_(std::make_unique<Entry[]>(std::bit_ceil(depth))),
      depth_(std::bit_ceil(depth)),
      depth_log2_(static_cast<uint32_t>(std::countr_zero(depth_))) {}

Jfc::~Jfc() {
  release_retired(UINT64_MAX);
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) ::close(descriptor_);
  if (member_ != nullptr) Jfce::leave(*member_);
}

bool Jfc::reserve(uint32_t entries) {
  uint32_t reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (entries > depth_ - reserved) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + entries, std::memory_order_acquire,
                                            std::memory_order_relaxed));
  return true;
}

void Jfc::retire(std::shared_ptr<Queues> queues) {
  Queues& last = *queues;
  Queues::Retirement& retirement = last.retirement();
  retirement.until = written_;
  retirement.self = std::move(queues);
  retirement.next = retired_.load(std::memory_order_relaxed);
  while (!retired_.compare_exchange_weak(retirement.next, &last, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

// Lets go of the queues whose entries all lie before `polled`.
void Jfc::release_retired(uint64_t polled) {
  Queues* taken = retired_.exchange(nullptr, std::memory_order_acquire);
  while (taken != nullptr) {
    Queues* const next = std::exchange(taken->retirement().next, releasing_);
    releasing_ = std::exchange(taken, next);
  }
  for (Queues** link = &releasing_; *link != nullptr;) {
    Queues::Retirement& retirement = (*link)->retirement();
    if (polled < retirement.until) {
      link = &retirement.next;
      continue;
    }
    unreserve((*link)->entries());
    *link = retirement.next;
    // As a rule nobody else has it any more, and it ends here.
    const std::shared_ptr<Queues> let_go = std::move(retirement.self);
  }
}

void Jfc::push(const Completion& completion, Queues* queues, uint16_t lease) {
  Entry& entry = entries_[written_ & (depth_ - 1)];
  entry.completion = completion;
  entry.queues = queues;
  entry.lease = lease;
  entry.mark.store(lap(written_), std::memory_order_release);
  ++written_;
  urgent_ |= completion.solicited || completion.status != Status::ok;
}

bool Jfc::wake() {
  // Pairs with the fences of the sleepers: either they see the entry, or we see them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool urgent = std::exchange(urgent_, false);
  const uint32_t where = sleeping_.load(std::memory_order_relaxed);
  if (where == not_sleeping || (where == sleeping_till_solicited && !urgent)) return false;
  // It may have woken by itself meanwhile, and sleep elsewhere now. Acquire: the descriptor.
  const uint32_t sleeping = sleeping_.exchange(not_sleeping, std::memory_order_acquire);
  if (sleeping == sleeping_here) futex_wake_all(sleeping_);
  // With the token, as without it the Jfc may be gone. Nobody is woken twice for one sleep.
  if (sleeping == sleeping_at_descriptor || sleeping == sleeping_till_solicited) ring();
  return sleeping == sleeping_elsewhere;
}

bool Jfc::ready() const {
  return entries_[read_ & (depth_ - 1)].mark.load(std::memory_order_acquire) == lap(read_);
}

size_t Jfc::poll(std::span<Completion> out) {
  size_t count = 0;
  while (count < out.size() && ready()) {
    const Entry& entry = entries_[read_ & (depth_ - 1)];
    out[count++] = entry.completion;
    // The entry may be written again as soon as its permit is back.
    Queues* queues = entry.queues;
    const uint16_t lease = entry.lease;
    ++read_;
    if (queues != nullptr) queues->polled(out[count - 1], lease);
  }
  if (releasing_ != nullptr || retired_.load(std::memory_order_relaxed) != nullptr) {
    release_retired(read_);
  }
  return count;
}

void Jfc::sleep(Duration limit) {
  sleeping_.store(sleeping_here, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) futex_wait(sleeping_, sleeping_here, limit);
  awake();
}

bool Jfc::sleep_elsewhere() {
  sleeping_.store(sleeping_elsewhere, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  awake();
  return false;
}

// ---- the descriptor

bool Jfc::make_descriptor() {
  if (descriptor_ >= 0) return true;
  const int made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (made < 0) return false;
  descriptor_ = made;
  not_inherited_ = NotInherited(made);
  return true;
}

void Jfc::attach(std::shared_ptr<Jfce> events, uint64_t tag) {
  auto member = std::make_unique<Jfce::Member>();
  member->tag = tag;
  member_ = member.release();
  events_ = std::move(events);
}

void Jfc::ring() const {
  if (events_ != nullptr) return events_->tell(*member_);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

// Each time it is read, not only after a ring that was seen: a late one leaves it readable while
// nothing is there, and whoever waits then would turn in circles.
bool Jfc::arm(bool solicited) {
  if (ready() || (descriptor_ < 0 && events_ == nullptr)) return false;
  if (events_ == nullptr) {
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor_, &rings, sizeof rings);
  }
  sleeping_.store(solicited ? sleeping_till_solicited : sleeping_at_descriptor,
                  std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  awake();
  return false;
}

}  // namespace urma::jetty
