// SPDX-License-Identifier: Apache-2.0
#include "fabric/event_queue.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace urma::fabric {
namespace {

// The heaps of the standard library have the last element of their order in front.
struct Later {
  bool operator()(const Event& a, const Event& b) const { return happens_before(b, a); }
};

void add_to_heap(std::vector<Event>& heap, const Event& event) {
  heap.push_back(event);
  std::push_heap(heap.begin(), heap.end(), Later{});
}

Event pop_off_heap(std::vector<Event>& heap) {
  std::pop_heap(heap.begin(), heap.end(), Later{});
  const Event event = heap.back();
  heap.pop_back();
  return event;
}

}  // namespace

EventQueue::EventQueue(const Settings& settings)
    : bucket_bits_(settings.bucket_bits),
      ring_size_(uint64_t{1} << std::max(settings.ring_bits, 6u)),
      heads_(ring_size_),
      occupied_(ring_size_ / 64),
      nodes_(settings.events) {}

void EventQueue::push(const Event& event) {
  ++size_;
  const uint64_t bucket = bucket_of(event.at);
  if (bucket <= open_bucket_) return add_to_open(event);
  if (bucket - open_bucket_ >= ring_size_) return add_to_heap(far_, event);
  add_to_ring(event, bucket);
}

void EventQueue::add_to_open(const Event& event) {
  open_.insert(std::upper_bound(open_.begin(), open_.end(), event, Later{}), event);
}

void EventQueue::add_to_ring(const Event& event, uint64_t bucket) {
  const uint64_t at = bucket & (ring_size_ - 1);
  uint32_t node = heads_[at];
  if (node == none || nodes_[node - 1].count == nodes_[node - 1].events.size()) {
    node = free_;
    if (node != none) {
      free_ = nodes_[node - 1].next;
    } else {
      URMA_ASSERT(touched_ < nodes_.size(), "the settings bound the number of pending events");
      node = ++touched_;
    }
    nodes_[node - 1].count = 0;
    nodes_[node - 1].next = heads_[at];
    heads_[at] = node;
    occupied_[at / 64] |= uint64_t{1} << at % 64;
  }
  Node& it = nodes_[node - 1];
  it.events[it.count++] = event;
  ++in_ring_;
}

bool EventQueue::pop(Time until, Event& event) {
  if (open_.empty() && (size_ == 0 || !open_next(until))) return false;
  if (open_.back().at > until) return false;
  event = open_.back();
  open_.pop_back();
  --size_;
  return true;
}

Time EventQueue::next() const {
  if (!open_.empty()) return open_.back().at;
  Time next = far_.empty() ? never : far_.front().at;
  if (in_ring_ == 0) return next;
  // This searches the bucket, and does not open it to sort it: all events before its end that are
  // pushed later would have to go into the heap of the open bucket.
  for (uint32_t node = heads_[next_in_ring() & (ring_size_ - 1)]; node != none;
       node = nodes_[node - 1].next) {
    const Node& it = nodes_[node - 1];
    for (uint32_t i = 0; i < it.count; ++i) next = std::min(next, it.events[i].at);
  }
  return next;
}

// Returns the first bucket of the ring that has an event. There must be one.
uint64_t EventQueue::next_in_ring() const {
  const uint64_t begin = open_bucket_ + 1;
  uint64_t at = begin & (ring_size_ - 1);
  uint64_t word = occupied_[at / 64] & (~uint64_t{0} << at % 64);
  while (word == 0) {
    at = ((at / 64 + 1) * 64) & (ring_size_ - 1);
    word = occupied_[at / 64];
  }
  at = at / 64 * 64 + static_cast<uint64_t>(std::countr_zero(word));
  return begin + ((at - begin) & (ring_size_ - 1));
}

// Opens the next bucket that has an event, unless all of its events are later than `until`.
bool EventQueue::open_next(Time until) {
  uint64_t bucket = in_ring_ > 0 ? next_in_ring() : UINT64_MAX;
  if (!far_.empty()) bucket = std::min(bucket, bucket_of(far_.front().at));
  // If a later bucket were opened now, all earlier events that are pushed afterwards would go into
  // one heap.
  if (bucket > bucket_of(until)) return false;
  open_bucket_ = bucket;
  const uint64_t at = bucket & (ring_size_ - 1);
  uint32_t node = heads_[at];
  heads_[at] = none;
  occupied_[at / 64] &= ~(uint64_t{1} << at % 64);
  while (node != none) {
    Node& it = nodes_[node - 1];
    open_.insert(open_.end(), it.events.begin(), it.events.begin() + it.count);
    in_ring_ -= it.count;
    const uint32_t next = it.next;
    it.next = free_;
    free_ = node;
    node = next;
  }
  while (!far_.empty() && bucket_of(far_.front().at) - bucket < ring_size_) {
    const Event event = pop_off_heap(far_);
    const uint64_t its = bucket_of(event.at);
    if (its == bucket) {
      open_.push_back(event);
    } else {
      add_to_ring(event, its);
    }
  }
  std::sort(open_.begin(), open_.end(), Later{});
  return true;
}

}  // namespace urma::fabric
