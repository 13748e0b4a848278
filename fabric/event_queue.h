// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/region.h"
#include "urma/core/time.h"

namespace urma::fabric {

// Something that happens in a simulation. Only the owner of the queue knows what `what` and `index`
// mean.
struct Event {
  Time at;
  uint32_t to;        // where it happens
  uint32_t sequence;  // numbers the events with this `to`, which have one source; may wrap
  uint32_t index;
  uint32_t what;
};
static_assert(sizeof(Event) == 24);

// Orders events by time, then by destination, then by sequence: never by the order of insertion.
inline bool happens_before(const Event& a, const Event& b) {
  if (a.at != b.at) return a.at < b.at;
  if (a.to != b.to) return a.to < b.to;
  return static_cast<int32_t>(a.sequence - b.sequence) < 0;
}

// The pending events of a simulation. Near ones are in a ring of buckets, each a few nanoseconds
// wide, which are sorted when their turn comes; far ones are in a heap. Used by one thread at a
// time.
class EventQueue {
 public:
  struct Settings {
    uint32_t events = 1 << 20;  // the most that are pending; they take memory once they are used
    unsigned bucket_bits = 4;   // a bucket is 2^bucket_bits ns wide
    unsigned ring_bits = 14;    // the ring has 2^ring_bits buckets, at least 64
  };

  EventQueue() : EventQueue(Settings{}) {}
  explicit EventQueue(const Settings& settings);

  // An event must not be earlier than those that were popped.
  void push(const Event& event);
  // Returns an event that will happen soon, if nothing is pushed, or null. `ahead`: 0 is the event
  // that `pop` returns next. For callers that prefetch what an event needs.
  const Event* soon(size_t ahead) const {
    return ahead < open_.size() ? &open_[open_.size() - 1 - ahead] : nullptr;
  }
  // Removes the first event, unless it is later than `until`; returns whether there was one.
  bool pop(Time until, Event& event);
  // Returns when the first event happens; `never` if none is pending.
  Time next() const;
  size_t size() const { return size_; }

 private:
  static constexpr uint32_t none = 0;  // links are index + 1

  // Some events of one bucket.
  struct alignas(64) Node {
    std::array<Event, 5> events;
    uint32_t count;
    uint32_t next;
  };

  uint64_t bucket_of(Time at) const {
    return static_cast<uint64_t>(at.time_since_epoch().count()) >> bucket_bits_;
  }
  void add_to_open(const Event& event);
  void add_to_ring(const Event& event, uint64_t bucket);
  uint64_t next_in_ring() const;
  bool open_next(Time until);

  unsigned bucket_bits_;
  uint64_t ring_size_;
  uint64_t open_bucket_ = 0;  // its events, and earlier ones, are in open_
  std::vector<Event> open_;   // sorted: the event that happens first is the last element
  std::vector<Event> far_;    // a heap of what is at least a ring away
  RegionArray<uint32_t> heads_;
  std::vector<uint64_t> occupied_;  // a bit for each bucket
  RegionArray<Node> nodes_;
  uint32_t free_ = none;
  uint32_t touched_ = 0;
  size_t size_ = 0;
  size_t in_ring_ = 0;
};

}  // namespace urma::fabric
