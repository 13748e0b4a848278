#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/not_inherited.h"
#include "urma/core/time.h"

namespace urma::jetty {

// Where the sleepers of several completion queues are woken (UB: JFCE): one descriptor, and the
// tags of the queues that have something. The queues may be of several engines.
// Writers: `told_` - engines push, the application takes all.
class Jfce {
 public:
  // One queue at this channel. It is kept by the queue, and by the list while it is in it.
  struct Member {
    uint64_t tag = 0;
    Member* next = nullptr;
    std::atomic<uint32_t> kept{1};
    std::atomic<bool> told{false};  // it is in the list
    std::atomic<bool> gone{false};  // the queue
  };

  Jfce() = default;
  Jfce(const Jfce&) = delete;
  ~Jfce();

  // False: errno says why there is no descriptor.
  bool make_descriptor();
  int descriptor() const { return descriptor_; }

  // ---- any thread

  // The queue has something. The descriptor becomes readable with the first one only: who is woken
  // finds them all.
  void tell(Member& member);
  // The queue goes: its tag is not taken any more.
  static void leave(Member& member);

  // ---- application, one thread at a time

  // Tags of queues that have something, oldest news first. While it returns as many as `out` holds
  // there may be more. The descriptor is unreadable once it has returned fewer.
  size_t take(std::span<uint64_t> out);

  // Until it is readable, at most `limit`.
  void await(Duration limit) const;

 private:
  static void release(Member& member);
  void ring() const;
  void take_told();

  std::atomic<Member*> told_{nullptr};
  Member* taken_ = nullptr;  // application: oldest first
  int descriptor_ = -1;
  NotInherited not_inherited_;
};

}  // namespace urma::jetty
