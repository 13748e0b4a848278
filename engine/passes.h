// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/tick_clock.h"
#include "engine/engine.h"
#include "engine/engine_time.h"
#include "engine/engine_token.h"
#include "engine/keeper.h"
#include "engine/reporter.h"
#include "engine/stage_times.h"
#include "engine/waker.h"

namespace urma::engine {

// Runs the engine's passes, one thread at a time: the one that holds the engine token. A thread
// that does not get the token is served by its holder. After each pass the *alarm* says when the
// next one is due. It does not know why a thread runs a pass, and never sleeps.
//
// Writers: the thread that holds the token, unless a member says otherwise.
class Passes {
 public:
  // This object owns none of these, and all of them outlive it. `clock`: the clock of a simulation,
  // else null. `inlined`: only the application's threads run passes.
  Passes(Engine& engine, Waker& waker, drivers::VirtualClock* clock, bool inlined)
      : engine_(engine),
        waker_(waker),
        clock_(clock),
        unattended_(inlined || clock != nullptr),
        by_clock_(clock != nullptr && !inlined),
        arms_(engine.port().facts().arms) {
    if (clock == nullptr) machine_clock_.emplace();
  }

  // ---- before the first pass

  void report_to(std::unique_ptr<Reporter> reporter);
  // From now on the stages of passes are timed. `stages` is not owned, and outlives this object.
  void time_stages(StageTimes& stages) { stages_ = &stages; }

  // ---- any thread

  // Returns null if the device has no reporter. Its `start`, `close` and `abandon` are for the
  // thread that opens and closes the device.
  Reporter* reporter() { return reporter_.get(); }
  // Runs one bounded pass, if no other thread has the token. `busy`: there may be more to do.
  // `polled`: the JFC for which an application runs the pass; else null.
  enum class Ran : uint8_t { by_another, idle, busy };
  Ran try_pass(const jetty::Jfc* polled);
  // Arms the port and runs a pass, for a thread that then sleeps at the port if the result is
  // `idle`. Returns `by_another` if it did neither.
  Ran try_last_pass();
  // That thread sleeps no longer. The next pass, of any thread, disarms the port.
  void slept() {
    if (arms_) disarm_.store(true, std::memory_order_relaxed);
  }
  // Copies and completes works that are being posted to this Jetty, if their memory is mapped.
  // Returns how many. The caller posts the others, and marks the Jetty for a pass.
  uint32_t copy_in_post(uint32_t jetty, std::span<const Work> works);
  // Returns whether a completion has come, so that the work that is posted next is to be sent
  // ahead; later works are sent together.
  bool expects_post() const { return expects_post_.load(std::memory_order_relaxed); }
  // Sends the work that was posted to this Jetty, because a peer waits for it. Returns false if
  // nothing was sent, as always while the service thread is the keeper; the caller then marks the
  // Jetty.
  bool send_ahead(uint32_t jetty, const Keeper& keeper);
  // Returns when the next pass is due, in the machine's time.
  Time alarm() const { return alarm_.load(std::memory_order_relaxed); }
  // Returns when an application last ran a pass, in the machine's time.
  Time polled_at() const { return polled_at_.load(std::memory_order_relaxed); }

  // ---- inside a pass

  // No pass calls the reporter after this.
  void end_reports();

  // Commands that are not done are run again after this time: some are done within half a
  // millisecond.
  static constexpr Duration command_patience = std::chrono::microseconds(250);

 private:
  bool run(const jetty::Jfc* polled);
  [[gnu::cold]] bool run_timed(const jetty::Jfc* polled);
  template <class Stages>
  bool run_pass(const jetty::Jfc* polled, Stages stages);
  [[gnu::cold]] jetty::CopiedInPost copy_timed(uint32_t jetty, std::span<const Work> works);
  Ran end_pass(bool busy);
  [[gnu::cold]] void disarm();
  Time machine_time() { return machine_clock_ ? machine_clock_->now() : clock_->now(); }
  bool next_pass_is_sure() const;
  bool plan_next(Time now);
  uint64_t work_done() const;
  void plan_copies(Time machine, bool polled);
  bool pass_may_wait();
  [[gnu::cold]] void report(Time machine);

  Engine& engine_;
  Waker& waker_;
  drivers::VirtualClock* const clock_;
  const bool unattended_;  // no service thread runs a pass when the application runs none
  const bool by_clock_;    // the clock of the simulation does, when the alarm says so
  const bool arms_;
  std::optional<TickClock> machine_clock_;  // empty in a simulation, which has `clock_`
  uint32_t copies_left_ = 0;                // of the budget for copies before the next pass
  uint64_t work_done_ = 0;                  // so far, at the last pass
  Time ran_at_{};                           // the last pass, in the machine's time
  EngineTime time_;
  Time next_deadline_ = never;  // engine time
  // When the next report is due, in the machine's time; `never` if nothing has changed since the
  // last one.
  Time report_at_ = never;
  bool reporting_ = false;
  bool rouse_ = false;  // the thread that sleeps at the descriptors must be woken
  std::unique_ptr<Reporter> reporter_;
  StageTimes* stages_ = nullptr;  // null if the device is not profiled

  EngineToken token_;
  std::atomic<bool> expects_post_{false};
  std::atomic<bool> disarm_{false};  // set by the thread that has slept at the port
  alignas(64) std::atomic<Time> polled_at_{};
  alignas(64) std::atomic<Time> alarm_{never};
};

}  // namespace urma::engine
