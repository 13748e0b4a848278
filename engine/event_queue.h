// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <span>

#include "base/not_inherited.h"
#include "jetty/event_sink.h"
#include "urma/core/time.h"

namespace urma::engine {

// Passes events from the engine to the application. Events within a millisecond that are alike (of
// the same kind and about the same peer, Jetty, path and segment) are counted as one, so that a
// frequent kind (bad tokens) does not displace others.
// Writers: `gathered_` - engine; ring - engine writes, the application takes; descriptor - made by
// the application, once.
class EventQueue final : public jetty::EventSink {
 public:
  static constexpr uint32_t most_gathered = 32;  // until `hand_over`; more are counted as missed
  static constexpr uint32_t capacity = 256;      // of the ring

  // `kinds`: those that the application has asked for. Others are dropped.
  explicit EventQueue(EventKinds kinds = {}) : kinds_(kinds) {}
  ~EventQueue() override;

  // ---- engine

  void raise(const Event& event) override;
  // Drops the gathered events of this Jetty.
  void forget(JettyId jetty) override;
  // Moves the gathered events to the ring, if a millisecond has passed since the last time.
  void deliver(Time now) {
    if (gathered_count_ > 0 && now >= not_before_) hand_over(now);
  }
  // Moves the gathered events to the ring now, as many as it has room for.
  [[gnu::cold]] void hand_over(Time now);
  // Returns when `deliver` is due.
  Time next_deadline() const { return gathered_count_ > 0 && !full() ? not_before_ : never; }

  // ---- application, one thread at a time

  // Returns whether gathered events found no room in the ring. Once the application has taken
  // events, it asks for a pass that calls `hand_over`.
  bool full() const { return full_.load(std::memory_order_relaxed); }

  // Makes the descriptor unreadable. Call it before `take`, of all queues that share the
  // descriptor: an event that comes later makes it readable again.
  void quieten();
  // Takes events, oldest first; returns how many. Makes the descriptor readable if some are left.
  size_t take(std::span<Event> out);
  // Makes the descriptor, which is readable while there are events to take. Returns false if that
  // failed; errno says why.
  bool make_descriptor();
  // From now on events make the descriptor of the other queue readable, which has one, and outlives
  // this object. This queue never closes it.
  void share_descriptor(const EventQueue& other);
  int descriptor() const { return descriptor_.load(std::memory_order_relaxed); }

  // ---- any thread, once there is a descriptor

  // Makes the descriptor readable.
  void ring() const;

 private:
  static constexpr Duration apart = std::chrono::milliseconds(1);

  const EventKinds kinds_;
  std::array<Event, most_gathered> gathered_;
  uint32_t gathered_count_ = 0;
  uint32_t missed_ = 0;
  // Whether gathered events found no room in the ring. They wait for the next pass, at the latest
  // the one that `Device::events` asks for when it has taken events.
  std::atomic<bool> full_{false};
  Time not_before_{};

  std::array<Event, capacity> ring_;
  alignas(64) std::atomic<uint32_t> written_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  std::atomic<int> descriptor_{-1};
  bool shared_ = false;  // the descriptor is another queue's
  NotInherited not_inherited_;
};

}  // namespace urma::engine
