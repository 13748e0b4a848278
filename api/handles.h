// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>

#include "engine/engines.h"
#include "engine/runner.h"
#include "urma/urma.hpp"

namespace urma {

// The state of the public objects. Each keeps the runner alive, and with it all engines of the
// device, so they may be destroyed in any order.

struct CompletionSource;

struct URMA_LOCAL Device::State {
  std::shared_ptr<engine::Runner> runner;  // of the first engine
  std::string text;                        // the device string
  DeviceOptions options;
  std::string congestion;  // by name
  std::string chosen;      // the retransmission mode, as text
  std::string no_signals;  // why the chosen congestion control is not used; or empty
  std::string unseen;      // why other processes cannot see its counters, if it is observable
  std::string reach;       // the device string by which processes of this host reach it
  // Where the congestion control and the capture come from, if the user chose them.
  std::optional<Setting> user_congestion;
  std::optional<Setting> user_capture;
  std::mutex published_mutex;
  std::map<std::string, engine::NameFiles::Held, std::less<>> published;

  engine::Engines& engines() const { return runner->engines(); }
  // Calls the function with the runner of each engine, the first one first.
  template <class Function>
  void for_each_runner(Function&& function) const {
    for (uint32_t i = 0; i < engines().count(); ++i) function(engines().at(i));
  }
  // Returns which engine runs a new queue: the one of the queues that it shares, since one engine
  // may write a queue; else each in turn. They are null if it shares none.
  Result<std::shared_ptr<engine::Runner>> choose_engine(std::string_view call,
                                                        const CompletionSource* completes,
                                                        const CompletionSource* receives) const;
};

struct URMA_LOCAL Segment::State {
  // The state that all segments of a TokenID share.
  struct Shared {
    std::atomic<TokenValue> newer{};
    std::mutex mutex;  // guards the members below; held while a segment is withdrawn
    bool revoked = false;
    State* first = nullptr;
  };

  std::shared_ptr<engine::Runner> runner;  // of the device, which lives as long as its segments
  Region owned;                            // private memory, if the library allocated it
  // Memory of the medium (a window), if the segment lies there.
  std::optional<engine::Registrations::Lease> leased;
  // The device that reads the memory by itself, or null if it does not.
  drivers::DeviceReads* read_by = nullptr;
  std::byte* base = nullptr;
  size_t bytes = 0;
  Rights rights = Rights::local_only;
  AtomicDomain atomics = AtomicDomain::processor;
  bool guarded = false;
  bool of_accelerator = false;  // registered memory of an accelerator (AcceleratorMemory)
  Handle handle;                // of the segment in the engine's table
  std::vector<Handle> copies;   // of the same segment in the tables of the other engines, in order
  TokenId id{};
  std::shared_ptr<Shared> token;
  State* previous = nullptr;  // the list of segments of the same TokenID
  State* next = nullptr;
  bool registered = false;
  bool fenced = true;  // once unregistered: no peer can write to it

  ~State();
  Result<void> unregister();
  Result<void> revoke();
  void join_others();
  void leave_others();
  std::unique_lock<std::mutex> lock_others();
  // The caller holds the lock that lock_others returned.
  Result<void> withdraw(std::string_view call);
  // Lets the device read the memory by itself, if it can and has to be let.
  void begin_reads(drivers::DeviceReads* reads);
  // Ends that, after the fence.
  void end_reads();
  // Ends it for all segments of the TokenID, and begins again: keys that peers have are void then.
  void renew_reads();
  // Enters the segment in the tables of the device's other engines, as it was `made` in the first
  // one. `with`: null, or the segment whose TokenID it shares. Returns the first failure.
  engine::Registrations::Segments::Added add_copies(
      const engine::Registrations::Segments::TokenPlan& plan,
      const engine::Registrations::Segments::Made& made, const State* with);
  // Calls the function with the runner of each other engine, and the segment's handle there.
  template <class Function>
  void for_each_copy(Function&& function) const {
    for (uint32_t i = 0; i < copies.size(); ++i) function(runner->engines().at(i + 1), copies[i]);
  }
  // These begin and end the withdrawal of these copies, or of those of all segments of the TokenID.
  using Withdrawals = std::array<engine::Registrations::Withdrawal, most_engines>;
  void begin_copies(std::optional<Withdrawals>& withdrawals, bool all);
  // Returns false if a peer may still access the memory through one of the other engines.
  bool end_copies(std::optional<Withdrawals>& withdrawals);
  engine::Registrations::Segments::Segment described_copy() const;
  // Takes memory of the medium. Returns false if the medium has none, or no room.
  bool take_memory();
  Descriptor::Segment describe() const;
  engine::Registrations::Segments::Segment described() const;  // for the engine's table
  // Returns the address of the segment's first byte, as peers name it.
  uint64_t address() const { return leased ? leased->address : reinterpret_cast<uint64_t>(base); }
};

// A completion queue and the runner of its device: what Jetty, Jfr and Jfc have in common.
struct CompletionSource {
  std::shared_ptr<engine::Runner> runner;
  urma::jetty::Jfc* jfc = nullptr;

  size_t poll(std::span<Completion> out);
  std::span<const Completion> wait(Duration limit, std::span<Completion> out);
  size_t take(std::span<Completion> out);
  size_t take_slowly(std::span<Completion> out);
  // Returns the queue's descriptor, which it makes if there is none. `kept` owns the queue.
  Result<int> fd(const std::shared_ptr<urma::jetty::Jfc>& kept);
  bool arm(Wake wake);
  Result<void> attach(const std::shared_ptr<urma::jetty::Jfc>& kept,
                      const std::shared_ptr<urma::jetty::Jfce>& events, uint64_t tag);
};

struct Jfc::State {
  CompletionSource source;
  std::shared_ptr<urma::jetty::Jfc> jfc;
  std::array<Completion, 64> taken;
};

struct Jfce::State {
  std::shared_ptr<engine::Runner> runner;  // the runner of the device that made the queue
  std::shared_ptr<urma::jetty::Jfce> events;
  std::array<uint64_t, 64> taken;
};

struct URMA_LOCAL Jetty::State {
  CompletionSource source;
  std::shared_ptr<urma::jetty::Queues> queues;
  engine::JettyControl::Made made;

  engine::Runner& runner() { return *source.runner; }
  size_t post(std::span<const Work> works);
  size_t post_slowly(std::span<const Work> works);
  size_t post_renamed(std::span<const Work> works);
  Descriptor::Jetty describe() const { return {.id = made.id, .token = made.token}; }
};

// Returns an error if control calls can no longer be made, because the device is closed or this is
// a forked child.
Result<void> usable(const engine::Runner& runner, std::string_view call);

// Returns whether the duration is a valid operation timeout.
constexpr bool may_time_out_after(Duration limit) {
  return limit >= std::chrono::milliseconds(10) && limit <= std::chrono::hours(1);
}

// Makes the error of a control call on an object that was moved from.
Error moved_from(std::string_view call);
// Makes the error of a call for which the system made no eventfd; `errno` says why.
Error no_descriptor(std::string_view call);
// As above, for a call of a public object: `state` is the object's state, which is null if the
// object was moved from.
template <class State>
Result<void> usable(const std::unique_ptr<State>& state, std::string_view call) {
  if (state == nullptr) return moved_from(call);
  const auto& runner = [&]() -> const engine::Runner& {
    if constexpr (requires { state->source; })
      return *state->source.runner;
    else
      return *state->runner;
  }();
  if (runner.here() && runner.open()) return {};
  return usable(runner, call);
}
// The completion that polling an object that was moved from returns.
inline constexpr Completion end_of_moved{.status = Status::closed, .from = {}};
inline size_t poll_moved(std::span<Completion> out) {
  if (out.empty() || out.data() == nullptr) return 0;
  out[0] = end_of_moved;
  return 1;
}

// Makes the error of a call that ran out of memory. Its message is empty if there is not enough
// memory for the text.
Error no_memory(std::string_view call);

// Makes a control call, and turns std::bad_alloc into an error, since no call of this library
// throws.
template <class Function>
auto guarded(std::string_view call, Function&& function) -> std::invoke_result_t<Function> {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return no_memory(call);
  }
}

// Makes a descriptor with the addresses and the identity of this device, without a segment or a
// Jetty.
Descriptor describe_device(const engine::Engines& engines);

}  // namespace urma
