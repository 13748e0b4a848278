#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "base/lazy_block.h"
#include "base/not_inherited.h"
#include "jetty/jfce.h"
#include "urma/core/time.h"
#include "urma/core/work.h"

namespace urma::jetty {

class Queues;

// Completions on their way from the engine to the application: a ring of 64-byte entries, each with
// its own mark, so that one cache line moves per completion and no index is shared. Whoever may
// write an entry holds a reservation for it: the ring cannot overflow. The ring, and what both
// sides write beside it, is address space until something is completed or somebody sleeps. Writers:
// entries, retired - engine; `sleeping` - set by the application thread that waits, cleared by
// both; reserved - anyone; descriptor - the application thread that polls, once.
class Jfc : private LazyBlock {
 public:
  // Throws std::bad_alloc.
  explicit Jfc(uint32_t depth);
  ~Jfc();

  uint32_t depth() const { return mask_ + 1; }

  // ---- any thread

  // False, and nothing reserved, when fewer than `entries` are left.
  bool reserve(uint32_t entries);
  // Gives a reservation back of which nothing is written that has not been polled. Pairs with
  // `reserve`: what was read there was read before whoever reserves it next has it written again.
  void unreserve(uint32_t entries) { reserved_.fetch_sub(entries, std::memory_order_release); }
  uint32_t reserved() const { return reserved_.load(std::memory_order_relaxed); }

  // ---- engine

  // A Jetty is gone: its queues are kept, and its entries stay reserved, until what it has
  // completed so far has been polled.
  void retire(std::shared_ptr<Queues> queues);

  // Appends a completion. `lease` returns to `queues` when it is polled, and so do the berths
  // chained behind it; `queues` may be null.
  void push(const Completion& completion, Queues* queues, uint16_t lease);
  // Wakes the application if it sleeps. Once per batch of pushes. True: it does not sleep here but
  // at the engine's descriptors (`sleep_elsewhere`), and the caller must wake it there.
  bool wake();

  // ---- application, one thread at a time, and whoever runs a pass for it

  // Nobody sleeps at it, or will before the caller has looked at it again.
  bool awake_here() const { return lines().sleeping.load(std::memory_order_relaxed) == 0; }

  // ---- any thread, once there is a descriptor

  // Makes it readable, armed or not; or tells its channel.
  void ring() const;

  // ---- application, one thread at a time

  // Takes what is there, at most as many as `out` holds.
  size_t poll(std::span<Completion> out);
  bool ready() const;
  // Sleeps until there may be something, at most `limit`.
  void sleep(Duration limit);
  // Says that the caller is about to sleep elsewhere. False: do not, there is something.
  bool sleep_elsewhere();
  void awake() { lines().sleeping.store(0, std::memory_order_relaxed); }
  // An eventfd that outlives all who may write to it. False: errno says why there is none. Throws
  // std::bad_alloc.
  bool make_descriptor();
  int descriptor() const { return seldom_ ? seldom_->descriptor : -1; }  // negative: none
  // From now on it has no descriptor of its own: who sleeps at it sleeps at this channel. Before
  // there is one, and once. Throws std::bad_alloc.
  void attach(std::shared_ptr<Jfce> events, uint64_t tag);
  bool attached() const { return seldom_ && seldom_->events != nullptr; }
  // The next `wake` makes the descriptor readable, which until then it is not, or tells the
  // channel. `solicited`: the next one after a completion that asks for it, or that failed. False:
  // there is something, or nowhere to sleep.
  bool arm(bool solicited);

 private:
  struct alignas(64) Entry {
    Completion completion;
    Queues* queues;
    uint16_t lease;
    std::atomic<uint32_t> mark;  // the lap it was written in, from 1
  };
  static_assert(sizeof(Entry) == 64);

  struct Lines {
    alignas(64) uint64_t written;  // engine
    bool urgent;                   // engine: something solicited, or failed, since the last wake
    alignas(64) uint64_t read;     // application
    Queues* releasing;             // application: taken from `retired`, not polled to the end
    alignas(64) std::atomic<uint32_t> sleeping;
    // The engine pushes, poll() takes all: a Jetty that goes costs neither side a lock or a malloc.
    std::atomic<Queues*> retired;
  };
  // For who sleeps at a descriptor.
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
  void release_retired(uint64_t polled);

  std::atomic<uint32_t> reserved_{0};
  const uint32_t mask_;
  const uint32_t depth_log2_;
  std::unique_ptr<Seldom> seldom_;
};

}  // namespace urma::jetty
