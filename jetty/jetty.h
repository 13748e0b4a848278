#pragma once

#include <memory>
#include <vector>

#include "jetty/queues.h"
#include "ordering/complete_gate.h"
#include "urma/base/flat_map.h"
#include "urma/base/handle.h"
#include "urma/base/slab.h"
#include "urma/base/time.h"

namespace urma::jetty {

// Ready: works run, messages arrive. Error: works posted and waiting complete as flushed, what
// arrives is refused (UB 6.1). A Jetty is created ready; `reset` in between is a step of the C API.
enum class JettyState : uint8_t { reset, ready, error };

struct Timeouts {
  Duration operation = std::chrono::seconds(2);  // without progress, for the oldest work
  Duration receiver = Duration::max();           // a living receiver that is not ready
};

// What the engine knows of a work, beside its berth.
struct WorkState {
  Time progress{};  // when something of it last happened
  Time cancelled_at{};
  uint32_t flow = UINT32_MAX;
  uint32_t number = 0;  // in its flow
  uint32_t cut_bytes = 0;
  uint16_t open_slices = 0;
  uint16_t older = Queues::none;  // in post order
  uint16_t newer = Queues::none;
  uint16_t next_to_cut = Queues::none;  // in its flow
  Status status = Status::ok;           // of what has ended so far
  bool cut = false;                     // nothing of it remains to be cut
  bool in_line = false;                 // waits in its flow to be cut
  bool executed = false;                // some slice of it was, or may have been
  bool cancelled = false;
  bool timed_out = false;  // cancelled because its time was up
  bool overdue = false;
};

// What the engine's half of a Jetty is made of. Whoever asks for a Jetty allocates it: a pass
// allocates nothing.
struct JettyParts {
  JettyParts(std::shared_ptr<Queues> queues, std::shared_ptr<Jfc> jfc, const Timeouts& timeouts);

  Timeouts timeouts;
  Handle receives_from;      // the JFR that it shares with others; none: its own receives
  std::shared_ptr<Jfc> jfc;  // outlives `queues`
  std::shared_ptr<Queues> queues;
  std::unique_ptr<WorkState[]> works;  // by berth
  std::unique_ptr<ordering::CompleteGate::Slot[]> gate_slots;
  std::vector<uint16_t> recycled;  // receive slots given back unused; never grows beyond its room
};

// The engine's half of a Jetty. A JFR that several Jetties share (UB 6.1) is one without berths,
// which they name by its handle: it may go before them.
struct Jetty : JettyParts {
  Jetty(JettyId id, TokenValue token, JettyParts parts);

  JettyId id;
  TokenValue token;
  JettyState state = JettyState::ready;

  // Initiator.
  ordering::CompleteGate gate;
  uint16_t oldest = Queues::none;
  uint16_t newest = Queues::none;
  uint32_t outstanding = 0;
  uint16_t chained = Queues::none;  // unsignalled works that are done, newest first
  uint32_t first_flow = UINT32_MAX;

  // Target.
  uint32_t immediates_raised = 0;
  uint32_t assemblies = 0;  // that came to this Jetty, and that hold a slot or permit of it
};

// All Jetties of an engine, and the way to their applications. Engine thread.
class Jetties {
 public:
  explicit Jetties(uint32_t capacity) : slab_(capacity), by_id_(capacity) {}

  bool full() const { return slab_.full(); }
  uint32_t size() const { return slab_.size(); }
  bool used(JettyId id) const { return by_id_.find(number(id)) != UINT32_MAX; }
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
  Slab<Jetty> slab_;
  FlatMap<uint64_t> by_id_;
  static constexpr size_t most_woken = 64;
  std::array<Jfc*, most_woken> to_wake_{};
  size_t to_wake_count_ = 0;
  bool kick_ = false;
  uint64_t completed_ = 0;
};

}  // namespace urma::jetty
