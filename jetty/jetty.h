#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "base/region.h"
#include "base/slab.h"
#include "jetty/queues.h"
#include "urma/core/handle.h"
#include "urma/core/time.h"

namespace urma::jetty {

// Ready: works run, messages arrive. Error: works posted and waiting complete as flushed, what
// arrives is refused (UB 6.1). A Jetty is created ready; `reset` in between is a step of the C API.
// Suspended: works are flushed, messages arrive.
enum class JettyState : uint8_t { reset, ready, suspended, error };

// What its application wants of the order of its works (docs/reliability.md).
struct Ordering {
  ServiceMode mode = ServiceMode::automatic;
  bool chain = false;             // relaxed works are strong
  bool in_order = false;          // completions in post order
  bool suspend_on_error = false;  // what fails suspends the Jetty
  uint8_t weight = 1;             // of its share of a channel
};

struct Timeouts {
  Duration operation = std::chrono::seconds(2);  // without progress, for the oldest work
  Duration receiver = Duration::max();           // a living receiver that is not ready
};

// What the engine's half of a Jetty is made of. Whoever asks for a Jetty allocates it: a pass
// allocates nothing.
struct JettyParts {
  JettyParts(std::shared_ptr<Queues> made, const Timeouts& limits)
      : timeouts(limits), queues(std::move(made)) {}

  Timeouts timeouts;
  Ordering ordering;
  Handle receives_from;  // the JFR that it shares with others; none: its own receives
  std::shared_ptr<Queues> queues;
};

// The engine's half of a Jetty. A JFR that several Jetties share (UB 6.1) is one without berths,
// which they name by its handle: it may go before them.
struct Jetty : JettyParts {
  Jetty(JettyId id, TokenValue token, JettyParts parts);

  JettyId id;
  TokenValue token;
  JettyState state = JettyState::ready;
  // Whether messages arrive.
  bool hears() const { return state == JettyState::ready || state == JettyState::suspended; }

  // Initiator.
  uint16_t oldest = Queues::none;
  uint16_t newest = Queues::none;
  uint16_t chained = Queues::none;  // unsignalled works that are done, newest first
  WorkState* const works;           // by berth
  ordering::CompleteGate gate;
  uint32_t outstanding = 0;
  uint32_t first_flow = UINT32_MAX;
  uint16_t fetching = 0;  // of these, reads and atomics
  bool gated = false;     // the submit gate has something to say of works to come

  // Target.
  uint32_t immediates_raised = 0;
  uint32_t assemblies = 0;  // that came to this Jetty, and that hold a slot or permit of it
  // Receive slots that were given back unused, the last one of which is the next to be used.
  std::span<uint16_t> recycled() const { return {queues->jfr().recycled(), recycled_count}; }
  void recycle(uint16_t lease) { queues->jfr().recycled()[recycled_count++] = lease; }
  uint16_t recycled_count = 0;
};

// All Jetties of an engine, and the way to their applications. Engine thread.
class Jetties {
 public:
  explicit Jetties(uint32_t capacity) : slab_(capacity), by_id_(id_limit) {}

  bool full() const { return slab_.full(); }
  uint32_t size() const { return slab_.size(); }
  bool used(JettyId id) const { return by_id_[number(id)] != 0; }
  // Null when full.
  Jetty* create(JettyId id, TokenValue token, JettyParts parts);
  void destroy(Jetty& jetty);
  Jetty* find(JettyId id);  // null: none
  Jetty& at(uint32_t index) { return slab_.at(index); }
  bool live(uint32_t index) const { return slab_.live(index); }
  // Whose receives are taken by what comes to this Jetty. Null: its JFR is gone.
  Jetty* receiver(Jetty& jetty) {
    return jetty.receives_from ? slab_.find(jetty.receives_from) : &jetty;
  }
  Handle handle_of(const Jetty& jetty) const { return slab_.handle_of(&jetty); }
  uint32_t index_of(const Jetty& jetty) const { return slab_.index_of(&jetty); }
  template <class Function>
  void for_each(Function&& function) {
    slab_.for_each(function);
  }

  // Shows a completion, of this Jetty or of one whose arrival took its lease from this one. `lease`
  // goes back to the application with it.
  void complete(Jetty& jetty, const Completion& completion, uint16_t lease);
  // Wakes the applications that sleep and were completed something since the last call. True: one
  // of them sleeps at the engine's descriptors, and the caller must wake it there.
  bool wake();
  // The same for whoever polls this one: it needs no fence to know that it does not sleep there.
  // Its descriptor may be armed, though.
  bool wake_others(const Jfc* polled) {
    const bool only = !kick_ && to_wake_count_ == 1 && to_wake_[0] == polled;
    if (!only || !polled->awake_here()) return wake();
    to_wake_count_ = 0;
    return false;
  }
  uint64_t completed() const { return completed_; }
  // Since the last wake.
  bool told() const { return to_wake_count_ > 0; }

 private:
  static void retire(Jetty& jetty);

  Slab<Jetty> slab_;
  RegionArray<uint32_t> by_id_;  // index + 1, or 0
  static constexpr size_t most_woken = 64;
  std::array<Jfc*, most_woken> to_wake_{};
  size_t to_wake_count_ = 0;
  bool kick_ = false;
  uint64_t completed_ = 0;
};

}  // namespace urma::jetty
