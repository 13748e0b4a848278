#include "jetty/jfc.h"

#include <bit>

#include "jetty/queues.h"
#include "urma/base/futex.h"

namespace urma::jetty {
namespace {

constexpr uint32_t not_sleeping = 0;
constexpr uint32_t sleeping_here = 1;
constexpr uint32_t sleeping_elsewhere = 2;

}  // namespace

Jfc::Jfc(uint32_t depth)
    : entries_(std::make_unique<Entry[]>(std::bit_ceil(depth))),
      depth_(std::bit_ceil(depth)),
      depth_log2_(static_cast<uint32_t>(std::countr_zero(depth_))) {}

bool Jfc::reserve(uint32_t entries) {
  uint32_t reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (entries > depth_ - reserved) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + entries));
  return true;
}

void Jfc::retire(std::shared_ptr<Queues> queues, uint32_t entries) {
  const std::lock_guard lock(retired_mutex_);
  retired_.push_back({written_, entries, std::move(queues)});
  retired_count_.fetch_add(1, std::memory_order_release);
}

void Jfc::release_retired() {
  const std::lock_guard lock(retired_mutex_);
  std::erase_if(retired_, [&](const Retired& retired) {
    if (read_ < retired.until) return false;
    reserved_.fetch_sub(retired.entries, std::memory_order_relaxed);
    retired_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  });
}

void Jfc::push(const Completion& completion, Queues* queues, uint16_t lease) {
  Entry& entry = entries_[written_ & (depth_ - 1)];
  entry.completion = completion;
  entry.queues = queues;
  entry.lease = lease;
  entry.mark.store(lap(written_), std::memory_order_release);
  ++written_;
}

bool Jfc::wake() {
  // Pairs with the fences of the sleepers: either they see the entry, or we see them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t sleeping = sleeping_.load(std::memory_order_relaxed);
  if (sleeping == not_sleeping) return false;
  sleeping_.store(not_sleeping, std::memory_order_relaxed);
  if (sleeping == sleeping_here) futex_wake_all(sleeping_);
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
  if (retired_count_.load(std::memory_order_relaxed) != 0) release_retired();
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

}  // namespace urma::jetty
