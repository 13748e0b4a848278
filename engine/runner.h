// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/not_inherited.h"
#include "engine/awaited_jfcs.h"
#include "engine/control_calls.h"
#include "engine/descriptor_sleep.h"
#include "engine/device_paths.h"
#include "engine/engine.h"
#include "engine/fork_mark.h"
#include "engine/keeper.h"
#include "engine/name_files.h"
#include "engine/open_state.h"
#include "engine/passes.h"
#include "engine/pollers.h"
#include "engine/profiler.h"
#include "engine/service_thread.h"
#include "engine/waiting.h"
#include "engine/waker.h"

namespace urma::engine {

class Engines;

// An engine of an open device: owns it and the parts that decide which thread runs it, and forwards
// each call of the application to the parts that it concerns in the device's mode (`Threads`). Each
// part answers one question, and its comment says which thread writes which member:
//
//   Passes           which thread runs the next pass (the engine token), and when is it due?
//   Keeper           does the application or the service thread ensure that passes are run?
//   ServiceThread    what does the device's own thread do?
//   Waker            how is a sleeping thread woken?
//   DescriptorSleep  when may a thread sleep at the engine's descriptors?
//   Waiting          how does an application thread wait for a JFC?
//   Pollers          when does a thread that polls let others have its processor?
//   ControlCalls     how does a control call come into a pass?
//   DevicePaths      at which addresses is the device reached?
//   AwaitedJfcs      which descriptors signal that it has closed?
//   OpenState        how far has it been closed?
//   ForkMark         is this the process that opened it, and are its calls not timed?
//   Profiler         how long does each stage take, if that was asked for?
class Runner final : public drivers::VirtualClock::Driven {
 public:
  Runner(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings, Threads threads,
         std::unique_ptr<Entropy> entropy);
  ~Runner() override;

  // Sets where the counters of this device are shown while it is open. Call it before `start`.
  void report_to(std::unique_ptr<Reporter> reporter) { passes_.report_to(std::move(reporter)); }
  // Starts the engine's thread, if it has one. Errors: no_resources.
  Result<void> start();
  // Ends all works and segments, notifies the peers, and stops the thread. Control calls still work
  // after it.
  void close();
  // Accepts no more works; `close` follows.
  void refuse_works() { state_.refuse(); }
  bool open() const { return state_.open(); }
  bool closed() const { return state_.closed(); }

  // Returns false in a child of the process that opened the device, where the device cannot be
  // used.
  bool here() const { return fork_mark_.here(); }
  // Returns whether calls need neither be refused, because this is such a child, nor timed.
  bool takes_fast_path() const { return fork_mark_.takes_fast_path(); }
  // Returns null if the device is not profiled.
  Profiler* profiler() { return profiler_.get(); }
  // Returns whether a thread of the device's own runs passes when the application runs none.
  bool has_service() const { return !inlined() && !simulated(); }
  bool simulated() const { return clock_ != nullptr; }

  // ---- the engines of the device, of which this is one

  // Written by `Engines`, which owns this object.
  struct Membership {
    Engines* engines = nullptr;
    uint32_t number = 0;
    std::atomic<bool> renames_peers{false};
  };
  Membership& membership() { return membership_; }
  Engines& engines() const { return *membership_.engines; }
  uint32_t number() const { return membership_.number; }
  // Returns whether peers have other names outside of this engine, which `engines` knows.
  bool renames_peers() const { return membership_.renames_peers.load(std::memory_order_acquire); }

  // ---- the data path; any thread

  // Posts works to this Jetty, whose queues these are, and returns how many. Works on mapped memory
  // may be plain copies, which end here and take nothing but a permit of the queues.
  size_t post(uint32_t index, jetty::Queues& queues, std::span<const Work> works) {
    if (works.empty()) return 0;
    const bool mapped = works[0].operation != Operation::send && works[0].segment.mapped();
    const size_t copied = mapped ? passes_.copy_in_post(index, works) : 0;
    if (copied == works.size()) return copied;
    const size_t posted = queues.post(works.subspan(copied));
    const bool sent = passes_.expects_post() && posted > 0 && passes_.send_ahead(index, keeper_);
    if (posted > 0 && !sent) {
      engine_.dirty().mark(index);
      // The mark is the fence: either the sleeper sees it, or this thread sees the sleeper.
      if (simulated() || waker_.asleep()) waker_.wake();
    }
    return copied + posted;
  }
  // For an application that polled and found no completion: runs a pass, unless the device is
  // served and open. If no pass ran or it found nothing, the thread may give way to others that
  // wait for its processor.
  void look(const jetty::Jfc& jfc);
  // From now on the service thread runs passes, because the caller sleeps at its JFC's descriptor.
  void hand_over() { keeper_.hand_over(); }
  // Returns when the JFC has a completion, after `limit`, or when the device is closed. Until then
  // the calling thread runs passes, or sleeps while another thread runs them.
  void wait(jetty::Jfc& jfc, Duration limit);

  // ---- the control path; any thread

  // Calls `function(Engine&, Time)` inside one pass after the other until it returns true, and
  // returns then.
  template <class Function>
  void call(Function&& function) {
    calls_.call(std::forward<Function>(function));
  }
  EventQueue& events() { return engine_.events(); }
  AwaitedJfcs& awaited() { return awaited_; }
  DevicePaths& paths() { return paths_; }
  const DevicePaths& paths() const { return paths_; }
  // The facts never change while the device is open.
  const drivers::PortFacts& port_facts() const { return port_facts_; }
  Incarnation life() const { return engine_.settings().life; }
  Duration operation_timeout() const { return engine_.settings().operation_timeout; }
  PeerId self() const { return self_; }

  // VirtualClock::Driven
  Time pass(Time now) override;

 private:
  bool inlined() const { return threads_ == Threads::inlined; }
  // Returns whether the application's threads run passes when they poll.
  bool polled_here() const { return threads_ != Threads::served; }
  void take_leave();
  void end_reports();

  Membership membership_;
  ForkMark fork_mark_;
  const Threads threads_;
  const drivers::PortFacts port_facts_;
  drivers::VirtualClock* const clock_;  // of a simulation, else null
  Engine engine_;
  std::vector<NotInherited> ports_;  // the engine's: a child would keep the address in use
  const PeerId self_;
  const std::unique_ptr<Profiler> profiler_;
  OpenState state_;
  Waker waker_;
  Keeper keeper_;
  Passes passes_;
  DescriptorSleep descriptors_;
  ServiceThread service_;
  Waiting waiting_;
  Pollers pollers_;
  ControlCalls calls_;
  DevicePaths paths_;
  AwaitedJfcs awaited_;
};

}  // namespace urma::engine
