// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/not_inherited.h"
#include "urma/core/time.h"

namespace urma::jetty {

// An event channel (UB: JFCE): one descriptor at which a thread waits for several completion
// queues, and the list of the queues that have completions, by their tags. The queues may belong to
// several engines; they own the channel. It does not know completions.
// Writers: `notified_` - engines push, the application takes all.
class Jfce {
 public:
  // A queue at this channel. Owned by the queue, and also by the list while it is listed.
  struct Member {
    uint64_t tag = 0;
    Member* next = nullptr;
    std::atomic<uint32_t> kept{1};
    std::atomic<bool> listed{false};  // whether it is in the list
    std::atomic<bool> gone{false};    // the queue has left
  };

  Jfce() = default;
  Jfce(const Jfce&) = delete;
  ~Jfce();

  // Returns false, with errno set, if the descriptor cannot be made.
  bool make_descriptor();
  int descriptor() const { return descriptor_; }

  // ---- any thread

  // The queue has completions. Only a notification that finds the list empty makes the descriptor
  // readable: the thread that wakes takes them all.
  void notify(Member& member);
  // The queue leaves the channel: from now on its tag is not returned.
  static void leave(Member& member);

  // ---- application, one thread at a time

  // Stores the tags of queues that have completions, oldest notification first. Returns how many.
  // If these are as many as `out` holds, there may be more; once `take` has returned fewer, the
  // descriptor is unreadable.
  size_t take(std::span<uint64_t> out);

  // Waits until the descriptor is readable, at most `limit`.
  void await(Duration limit) const;

 private:
  static void release(Member& member);
  void ring() const;
  void take_notified();

  std::atomic<Member*> notified_{nullptr};
  Member* taken_ = nullptr;  // application: oldest first
  int descriptor_ = -1;
  NotInherited not_inherited_;
};

}  // namespace urma::jetty
