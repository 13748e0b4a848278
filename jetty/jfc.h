// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "base/lazy_block.h"
#include "base/not_inherited.h"
#include "base/probes.h"
#include "jetty/jfce.h"
#include "urma/core/time.h"
#include "urma/core/work.h"

namespace urma::jetty {

class Queues;

// A completion queue (UB: JFC): it carries completions from the engine to the application. It is a
// ring of 64-byte entries, each with its own mark, so that one cache line moves per completion and
// no index is shared. It cannot overflow: a Jetty holds a reservation for each entry that it may
// cause to be written. It knows works only by lease. The ring, and the words that both sides write
// beside it, take no memory until something is completed or a thread sleeps.
// Writers: entries, `retired` - engine; `sleeping` - set by the application thread that waits,
// cleared by both sides; `reserved` - any thread; descriptor - the application thread that polls,
// once.
class Jfc : private LazyBlock {
 public:
  // Throws std::bad_alloc.
  explicit Jfc(uint32_t depth);
  ~Jfc();

  uint32_t depth() const { return mask_ + 1; }

  // ---- any thread

  // Reserves entries. Returns false, and reserves nothing, if fewer than `entries` are free.
  bool reserve(uint32_t entries);
  // Gives back a reservation whose written entries have all been polled. The release order, paired
  // with the acquire of `reserve`, ensures that the old entries are read before the next owner has
  // them overwritten.
  void unreserve(uint32_t entries) { reserved_.fetch_sub(entries, std::memory_order_release); }
  uint32_t reserved() const { return reserved_.load(std::memory_order_relaxed); }

  // ---- engine

  // Called when a Jetty is destroyed: keeps its queues, and the reservation of its entries, until
  // all completions written so far have been polled.
  void retire(std::shared_ptr<Queues> queues);

  // Appends a completion. When it is polled, `lease` and the berths chained behind it are given
  // back to `queues`, which may be null.
  [[gnu::always_inline]] void push(const Completion& completion, Queues* queues, uint16_t lease) {
    touch();
    Lines& own = lines();
    Entry& next = entry(own.written);
    next.completion = completion;
    next.queues = queues;
    next.lease = lease;
    probes::complete(queues, lease, probes::in_memory(next.completion));
    next.mark.store(lap(own.written), std::memory_order_release);
    ++own.written;
    own.urgent |= completion.solicited || completion.status != Status::ok;
  }
  // Wakes the application's thread if it sleeps. Called once per batch of pushes. Returns true if
  // the thread sleeps at the engine's descriptors instead (`sleep_elsewhere`), where the caller
  // must wake it.
  bool wake() {
    // Pairs with the fences of sleeping threads: either they see the entry, or this thread sees
    // that they sleep.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool urgent = std::exchange(lines().urgent, false);
    return !awake_here() && wake_sleeper(urgent);
  }

  // ---- application, one thread at a time, or a thread that runs a pass for it

  // Returns true if no thread sleeps at this queue. A thread that is about to sleep checks the
  // queue once more before it sleeps.
  bool awake_here() const { return lines().sleeping.load(std::memory_order_relaxed) == 0; }

  // ---- any thread, once the JFC was attached or given a descriptor

  // Makes the descriptor readable, whether it is armed or not; or notifies the event channel. Does
  // nothing if the JFC has neither.
  void ring() const;

  // ---- application, one thread at a time

  // Takes completions, at most as many as `out` holds.
  size_t poll(std::span<Completion> out);
  bool ready() const {
    const uint64_t next = lines().read;
    return entry(next).mark.load(std::memory_order_acquire) == lap(next);
  }
  // Sleeps until there may be a completion, at most `limit`.
  void sleep(Duration limit);
  // Announces that the caller is about to sleep elsewhere. Returns false if it must not, because
  // there is a completion.
  bool sleep_elsewhere();
  void awake() { lines().sleeping.store(0, std::memory_order_relaxed); }
  // Makes an eventfd, which lives as long as the queue. Returns false, with errno set, if that
  // failed. Throws std::bad_alloc.
  bool make_descriptor();
  // Returns the descriptor; negative if there is none.
  int descriptor() const { return seldom_ ? seldom_->descriptor : -1; }
  // From now on threads that wait for this queue sleep at this event channel; the queue has no
  // descriptor of its own. Call it once, before the queue has a descriptor. Throws std::bad_alloc.
  void attach(std::shared_ptr<Jfce> events, uint64_t tag);
  bool attached() const { return seldom_ && seldom_->events != nullptr; }
  // Makes the descriptor unreadable until the next `wake` with completions makes it readable, or
  // notifies the channel. With `solicited`, only a `wake` after a solicited or failed completion
  // does so. Returns false if there is a completion, or neither descriptor nor channel.
  bool arm(bool solicited);

 private:
  struct alignas(64) Entry {
    Completion completion;
    Queues* queues;
    uint16_t lease;
    std::atomic<uint32_t> mark;  // the lap of the ring in which it was written, from 1
  };
  static_assert(sizeof(Entry) == 64);

  struct Lines {
    alignas(64) uint64_t written;  // engine
    bool urgent;  // engine: a solicited or failed completion was pushed since the last wake
    alignas(64) uint64_t read;  // application
    Queues* releasing;          // application: taken from `retired`, not yet polled to the end
    alignas(64) std::atomic<uint32_t> sleeping;
    // The engine pushes, poll() takes all, so that destroying a Jetty costs neither side a lock or
    // a malloc.
    std::atomic<Queues*> retired;
  };
  // For queues whose application sleeps at a descriptor.
  struct Seldom {
    int descriptor = -1;
    NotInherited not_inherited;
    std::shared_ptr<Jfce> events;
    Jfce::Member* member = nullptr;
  };

  Lines& lines() const { return *reinterpret_cast<Lines*>(data()); }
  Entry& entry(uint64_t index) const {
    return reinterpret_cast<Entry*>(data() + sizeof(Lines))[index & mask_];
  }
  uint32_t lap(uint64_t index) const { return static_cast<uint32_t>(index >> depth_log2_) + 1; }
  Seldom& seldom();
  [[gnu::cold]] bool wake_sleeper(bool urgent);
  void release_retired(uint64_t polled);

  std::atomic<uint32_t> reserved_{0};
  const uint32_t mask_;
  const uint32_t depth_log2_;
  std::unique_ptr<Seldom> seldom_;
};

}  // namespace urma::jetty
