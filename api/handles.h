#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>

#include "engine/runner.h"
#include "urma/urma.hpp"

namespace urma {

// What the public objects hold. Each keeps the runner alive, so they may be destroyed in any order.

struct Device::State {
  std::shared_ptr<engine::Runner> runner;
  std::string text;  // the device string
  DeviceOptions options;
  std::string congestion;  // by name
  std::string chosen;      // how packets are retransmitted, for people
  std::string unseen;      // why others do not see what it counts, if they should
  std::string reach;       // what others on this host open in order to reach it
  std::mutex published_mutex;
  std::map<std::string, engine::NameFiles::Held, std::less<>> published;
};

struct URMA_LOCAL Segment::State {
  // By all segments of a TokenID.
  struct Shared {
    std::atomic<TokenValue> newer{};
    std::mutex mutex;  // of what follows; held while a segment is withdrawn
    bool revoked = false;
    State* first = nullptr;
  };

  std::shared_ptr<engine::Runner> runner;
  Region owned;                                 // empty for memory of the caller's
  std::optional<engine::Engine::Lease> leased;  // memory of the device's
  std::byte* base = nullptr;
  size_t bytes = 0;
  Rights rights = Rights::local_only;
  AtomicDomain atomics = AtomicDomain::processor;
  bool guarded = false;
  Handle handle;  // in the engine's table
  TokenId id{};
  std::shared_ptr<Shared> token;
  State* previous = nullptr;  // of the same TokenID
  State* next = nullptr;
  bool registered = false;
  bool fenced = true;  // once unregistered

  ~State();
  Result<void> unregister();
  Result<void> revoke();
  void join_others();
  void leave_others();
  std::unique_lock<std::mutex> lock_others();
  // Others are locked out.
  Result<void> withdraw(std::string_view call);
  // False: the device has no memory of its own, or no room.
  bool take_memory();
  Descriptor::Segment describe() const;
  engine::Engine::Segments::Segment described() const;  // for the engine's table
  // By which others know its first byte.
  uint64_t address() const { return leased ? leased->address : reinterpret_cast<uint64_t>(base); }
};

// Where completions come from.
struct CompletionSource {
  std::shared_ptr<engine::Runner> runner;
  urma::jetty::Jfc* jfc = nullptr;

  size_t poll(std::span<Completion> out);
  std::span<const Completion> wait(Duration limit, std::span<Completion> out);
  // `kept` is the queue.
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
  std::shared_ptr<engine::Runner> runner;  // of the device that it was made by
  std::shared_ptr<urma::jetty::Jfce> events;
  std::array<uint64_t, 64> taken;
};

struct Jetty::State {
  CompletionSource source;
  std::shared_ptr<urma::jetty::Queues> queues;
  engine::Engine::JettyMade made;

  engine::Runner& runner() { return *source.runner; }
  Descriptor::Jetty describe() const { return {.id = made.id, .token = made.token}; }
};

// Why a control call cannot be made on this device any more, if it cannot.
Result<void> usable(const engine::Runner& runner, std::string_view call);

// Whether works of a device or a Jetty may end after so long without progress.
constexpr bool may_time_out_after(Duration limit) {
  return limit >= std::chrono::milliseconds(10) && limit <= std::chrono::hours(1);
}

// The error of a control call on an object that was moved from.
Error moved_from(std::string_view call);
// Why such a call cannot be made through this object, if it cannot. `state` is what it holds.
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
// What polling and waiting for an object that was moved from gives.
inline constexpr Completion end_of_moved{.status = Status::closed, .from = {}};

// The error of a call for which there is no memory; without its text when there is none for that.
Error no_memory(std::string_view call);

// Makes a control call. Nothing throws out of this library: short memory is an error like others.
template <class Function>
auto guarded(std::string_view call, Function&& function) -> std::invoke_result_t<Function> {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return no_memory(call);
  }
}

// A descriptor of this device, to be filled with what lives on it.
Descriptor describe_device(const engine::Runner& runner);

}  // namespace urma
