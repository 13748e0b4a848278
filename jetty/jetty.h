// SPDX-License-Identifier: Apache-2.0
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

// Ready: works are executed, messages are accepted. Error: posted and outstanding works complete as
// flushed, messages are refused (UB 6.1). Suspended: works are flushed, messages are accepted. A
// Jetty is created ready. No Jetty here is in the state `reset`: a call that resets a Jetty makes
// it ready.
enum class JettyState : uint8_t { reset, ready, suspended, error };

// The order that the application asks for (docs/reliability.md).
struct Ordering {
  ServiceMode mode = ServiceMode::automatic;
  bool chain = false;             // relaxed works count as strong
  bool in_order = false;          // completions in post order
  bool suspend_on_error = false;  // a failed work suspends the Jetty
  uint8_t weight = 1;             // for its share of a channel
  bool urgent = false;            // its slices leave before usual ones
};

// How long works may wait.
struct Timeouts {
  Duration operation = std::chrono::seconds(2);  // how long the oldest work may make no progress
  Duration receiver = Duration::max();  // how long a receiver may answer that it is not ready
};

// Everything that the engine's half of a Jetty is made from. The control call allocates it, because
// a pass never allocates.
struct JettyParts {
  JettyParts(std::shared_ptr<Queues> made, const Timeouts& limits)
      : timeouts(limits), queues(std::move(made)) {}

  Timeouts timeouts;
  Ordering ordering;
  // Whether a write with an immediate takes a posted receive, as UB has it, and not a permit.
  bool immediates_take_receives = false;
  bool id_is_chosen = false;  // the application has chosen the id, which is then not drawn
  Handle receives_from;  // the JFR that it shares with other Jetties; or zero if it has its own
                         // receives
  std::shared_ptr<Queues> queues;
};

// The engine's half of a Jetty. Jetties owns it; only the thread that runs the engine uses it. A
// JFR that several Jetties share (UB 6.1) is a Jetty without berths; the others refer to it by its
// handle, so it may be destroyed before them.
struct Jetty : JettyParts {
  Jetty(JettyId id, TokenValue token, JettyParts parts);

  JettyId id;                            // names it to peers
  TokenValue token;                      // peers that send to it prove that they may
  JettyState state = JettyState::ready;  // what happens to works and messages
  // Returns whether the Jetty accepts messages.
  bool accepts_messages() const {
    return state == JettyState::ready || state == JettyState::suspended;
  }

  // Initiator.
  uint16_t oldest = Queues::none;   // berth of the outstanding work that was posted first
  uint16_t newest = Queues::none;   // berth of the one that was posted last
  uint16_t chained = Queues::none;  // completed unsignalled works, newest first
  WorkState* const works;           // by berth
  ordering::CompleteGate gate;      // delays completions that come out of order
  uint32_t outstanding = 0;         // works that have been taken and have not ended
  uint32_t first_flow = no_flow;    // the list of its flows, one for each peer that it uses
  uint16_t fetching = 0;            // how many of the outstanding works are reads and atomics
  bool gated = false;               // later works must pass the submit gate

  // Target.
  uint32_t immediates_raised = 0;  // so far; the JFR counts those that were polled
  uint32_t assemblies = 0;         // slices that hold a receive slot or a permit of this Jetty
  // Receive slots that were taken but not used. The last of them is used next.
  std::span<uint16_t> recycled() const { return {queues->jfr().recycled(), recycled_count}; }
  void recycle(uint16_t lease) { queues->jfr().recycled()[recycled_count++] = lease; }
  // Takes a recycled slot, else the oldest posted one. Returns false if there is none.
  bool take_receive(uint16_t& lease);
  uint16_t recycled_count = 0;  // entries of recycled()
};

// All Jetties of an engine, by id and by handle. It also pushes completions to their applications
// and wakes waiting threads. It does not know works or slices. Transactions owns it; only the
// thread that runs the engine calls it.
class Jetties {
 public:
  explicit Jetties(uint32_t capacity) : slab_(capacity), by_id_(id_limit) {}

  bool full() const { return slab_.full(); }
  uint32_t size() const { return slab_.size(); }
  bool used(JettyId id) const { return by_id_[number(id)] != 0; }
  // Returns null if there are `capacity` Jetties.
  Jetty* create(JettyId id, TokenValue token, JettyParts parts);
  void destroy(Jetty& jetty);
  Jetty* find(JettyId id);                                   // returns null if there is none
  Jetty* find(Handle handle) { return slab_.find(handle); }  // or if it was destroyed
  Jetty& at(uint32_t index) { return slab_.at(index); }
  bool live(uint32_t index) const { return slab_.live(index); }
  // Returns the Jetty whose receives are used by messages to `jetty`: `jetty` itself, or its JFR.
  // Returns null if the JFR has been destroyed.
  Jetty* receiver(Jetty& jetty) {
    return jetty.receives_from ? slab_.find(jetty.receives_from) : &jetty;
  }
  Handle handle_of(const Jetty& jetty) const { return slab_.handle_of(&jetty); }
  uint32_t index_of(const Jetty& jetty) const { return slab_.index_of(&jetty); }
  template <class Function>
  void for_each(Function&& function) {
    slab_.for_each(function);
  }
  // The same for the Jetties whose index is below `end`.
  template <class Function>
  void for_each_below(uint32_t end, Function&& function) {
    slab_.for_each_below(end, function);
  }

  // Pushes a completion of this Jetty. `lease` is a berth or receive slot of this Jetty, which the
  // application gets back when the completion is polled.
  [[gnu::always_inline]] void complete(Jetty& jetty, const Completion& completion, uint16_t lease) {
    Jfc* const jfc = &jetty.queues->jfc();
    jfc->push(completion, jetty.queues.get(), lease);
    ++completed_;
    // Usually all completions between two calls of `wake` are for one queue.
    if (to_wake_count_ == 0) {
      to_wake_[to_wake_count_++] = jfc;
    } else if (to_wake_[to_wake_count_ - 1] != jfc) {
      note_to_wake(jfc);
    }
  }
  // Wakes the threads that wait for completions pushed since the last call. Returns true if one of
  // them sleeps at the engine's descriptors, where the caller must wake it.
  bool wake() {
    bool kick = std::exchange(kick_, false);
    for (Jfc* jfc : std::span(to_wake_).first(to_wake_count_)) kick = jfc->wake() || kick;
    to_wake_count_ = 0;
    return kick;
  }
  // As `wake`, for a thread that polls the queue `polled` itself: if completions came only to this
  // queue, no fence is needed, because the thread does not sleep, unless the queue's descriptor is
  // armed.
  bool wake_others(const Jfc* polled) {
    const bool only = !kick_ && to_wake_count_ == 1 && to_wake_[0] == polled;
    if (!only || !polled->awake_here()) return wake();
    to_wake_count_ = 0;
    return false;
  }
  uint64_t completed() const { return completed_; }
  // Returns whether a completion was pushed since the last `wake`.
  bool pushed() const { return to_wake_count_ > 0; }

 private:
  static void retire(Jetty& jetty);
  void note_to_wake(Jfc* jfc);

  Slab<Jetty> slab_;
  RegionArray<uint32_t> by_id_;  // index + 1, or 0
  static constexpr size_t most_woken = 64;
  std::array<Jfc*, most_woken> to_wake_{};
  size_t to_wake_count_ = 0;
  bool kick_ = false;
  uint64_t completed_ = 0;
};

}  // namespace urma::jetty
