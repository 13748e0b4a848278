#pragma once

#include <array>
#include <atomic>
#include <span>

#include "base/not_inherited.h"
#include "jetty/event_sink.h"
#include "urma/core/time.h"

namespace urma::engine {

// Events on their way from the engine to the application. What comes again and again, as bad tokens
// do, is counted and handed over once a millisecond; so one kind does not crowd out the others.
// Writers: `gathered_` - engine; ring - engine writes, the application takes; descriptor - made by
// the application, once.
class EventQueue final : public jetty::EventSink {
 public:
  EventQueue() = default;
  ~EventQueue() override;

  // ---- engine

  void raise(const Event& event) override;
  // Hands over what was gathered, if it is time.
  void deliver(Time now) {
    if (gathered_count_ > 0 && now >= not_before_) hand_over(now);
  }
  // All of it, now.
  [[gnu::cold]] void hand_over(Time now);
  // When `deliver` has something to do.
  Time next_deadline() const { return gathered_count_ > 0 && !full() ? not_before_ : never; }

  // ---- application, one thread at a time

  // Something found no room in the ring: once it is taken, a pass hands over the rest.
  bool full() const { return full_.load(std::memory_order_relaxed); }

  size_t take(std::span<Event> out);
  // False: errno says why there is no descriptor. Readable while there is something to take.
  bool make_descriptor();
  int descriptor() const { return descriptor_.load(std::memory_order_relaxed); }

  // ---- any thread, once there is a descriptor

  // Makes it readable.
  void ring() const;

 private:
  static constexpr Duration apart = std::chrono::milliseconds(1);
  static constexpr uint32_t capacity = 256;

  std::array<Event, 32> gathered_;
  uint32_t gathered_count_ = 0;
  uint32_t missed_ = 0;
  // Something found no room: it waits for a pass that somebody has for another reason, such as the
  // one that `Device::events` asks for when it has emptied the ring.
  std::atomic<bool> full_{false};
  Time not_before_{};

  std::array<Event, capacity> ring_;
  alignas(64) std::atomic<uint32_t> written_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  std::atomic<int> descriptor_{-1};
  NotInherited not_inherited_;
};

}  // namespace urma::engine
