// SPDX-License-Identifier: Apache-2.0
#include "engine/passes.h"

#include <algorithm>

#include "base/clock.h"

namespace urma::engine {
namespace {

// Peers and deadlines wait for passes. So at most this many works are copied between two passes,
// and only while they follow one another within this time (jetty::copied_like_one).
constexpr uint32_t copies_per_pass = 256;
constexpr Duration copy_pace = std::chrono::nanoseconds(500);
// The longest time without a pass of a device whose application runs all of them, if it posts.
constexpr Duration unattended_wait = std::chrono::milliseconds(4);

}  // namespace

void Passes::report_to(std::unique_ptr<Reporter> reporter) {
  reporter_ = std::move(reporter);
  reporting_ = true;
  report_at_ = Time{};
}

void Passes::end_reports() {
  reporting_ = false;
  report_at_ = never;
}

Passes::Ran Passes::try_pass(const jetty::Jfc* polled) {
  if (!token_.take()) return Ran::by_another;
  if (disarm_.load(std::memory_order_relaxed)) disarm();
  return end_pass(run(polled));
}

Passes::Ran Passes::try_last_pass() {
  if (!token_.take()) return Ran::by_another;
  disarm_.store(false, std::memory_order_relaxed);
  engine_.port().arm();
  return end_pass(run(nullptr));
}

Passes::Ran Passes::end_pass(bool busy) {
  const bool rouse = rouse_;
  token_.drop();
  if (rouse) waker_.wake();
  return busy ? Ran::busy : Ran::idle;
}

void Passes::disarm() {
  disarm_.store(false, std::memory_order_relaxed);
  engine_.port().disarm();
}

// Returns true if there may be more to do.
bool Passes::run(const jetty::Jfc* polled) {
  return stages_ == nullptr ? run_pass<NoStages>(polled, {}) : run_timed(polled);
}

bool Passes::run_timed(const jetty::Jfc* polled) {
  StageTimer stages(*stages_);
  return run_pass<StageTimer&>(polled, stages);
}

template <class Stages>
bool Passes::run_pass(const jetty::Jfc* polled, Stages stages) {
  const Time machine = machine_time();
  const Time now = time_.advance(machine, next_deadline_);
  const bool timer_ran = now >= next_deadline_;
  const bool busy = engine_.pass<Stages>(now, polled, stages);
  if (polled != nullptr) polled_at_.store(machine, std::memory_order_relaxed);
  rouse_ = false;
  if (engine_.rest().left() && next_pass_is_sure()) {
    expects_post_.store(true, std::memory_order_relaxed);
    rouse_ = engine_.take_kick();
    next_deadline_ = now;
    stages.ended(Stage::finish);
    return true;
  }
  plan_copies(machine, polled != nullptr);
  const bool reports = machine >= report_at_;
  if (reports) {
    stages.ended(Stage::finish);
    report(machine);
    stages.ended(Stage::report);
  } else if ((busy || timer_ran) && report_at_ == never && reporting_) {
    report_at_ = machine + Reporter::interval;
  }
  // An alarm in the past would let no thread sleep.
  if (engine_.found_nothing() && engine_.rest().planned()) next_deadline_ = engine_.next_deadline();
  const bool alarm_stays = polled != nullptr && engine_.found_nothing() &&
                           (!engine_.rest().planned() || next_pass_is_sure());
  if (alarm_stays && !reports) {
    stages.ended(Stage::look);
    return false;
  }
  if (polled != nullptr && engine_.showed_completion())
    expects_post_.store(true, std::memory_order_relaxed);
  rouse_ = plan_next(now);
  stages.ended(Stage::finish);
  return busy;
}

// Returns whether a thread runs another pass soon, whatever the alarm says: the application that
// polls, or the service thread once it does not. But a thread that sleeps for the engine sleeps
// until the alarm. It has the token after it has said that it will sleep, so the holder of the
// token sees that, or the sleeper's last pass comes after this one and sets the alarm.
bool Passes::next_pass_is_sure() const {
  return !by_clock_ && waker_.needs_pass() && !waker_.asleep();
}

// Sets the alarm. Returns whether the thread at the descriptors must be woken because it has a
// completion, or because the next pass is due earlier than was planned.
bool Passes::plan_next(Time now) {
  next_deadline_ = engine_.next_deadline();
  if (engine_.commands().waits()) next_deadline_ = std::min(next_deadline_, now + command_patience);
  const Time due = std::min(time_.to_machine(next_deadline_), report_at_);
  const Time planned = alarm_.load(std::memory_order_relaxed);
  if (due != planned) alarm_.store(due, std::memory_order_relaxed);
  return engine_.take_kick() || due < planned;
}

void Passes::report(Time machine) {
  const bool complete = reporter_->report(engine_, machine);
  // The speed of the log's thread must not affect a simulation: counters that could not be reported
  // now are reported together with the next change.
  report_at_ = complete || clock_ != nullptr ? never : machine + Reporter::interval;
}

uint64_t Passes::work_done() const {
  const jetty::InitiatorCounters& counters = engine_.transactions().initiator().counters();
  return counters.works + counters.copied_bytes / jetty::copied_like_one;
}

void Passes::plan_copies(Time machine, bool polled) {
  const uint64_t done = work_done();
  // A thread whose pass finds nothing polls, so there are enough passes.
  const bool follow = (polled && engine_.found_nothing()) ||
                      machine - ran_at_ <= (done - work_done_ + 1) * copy_pace;
  copies_left_ = follow ? copies_per_pass : 0;
  work_done_ = done;
  ran_at_ = machine;
}

// Posts may have become rare since the last pass. Then a service thread runs the passes that peers
// and deadlines need; if there is none, a post does.
[[gnu::always_inline]] inline bool Passes::pass_may_wait() {
  if (clock_ != nullptr) return clock_->now() == ran_at_;
  return !unattended_ || machine_clock_->now() - ran_at_ < unattended_wait;
}

// These works wait for no peer and no time. A report that is planned counts them.
uint32_t Passes::copy_in_post(uint32_t jetty, std::span<const Work> works) {
  if (!token_.take()) return 0;
  const bool counted = !reporting_ || report_at_ != never;
  const bool may = counted && copies_left_ > 0 && pass_may_wait();
  const jetty::CopiedInPost copied = !may ? jetty::CopiedInPost{}
                                     : stages_ == nullptr
                                         ? engine_.copy_in_post(jetty, works, copies_left_)
                                         : copy_timed(jetty, works);
  copies_left_ -= copied.cost;
  const bool rouse = engine_.take_kick();
  token_.drop();
  if (rouse) waker_.wake();
  return copied.works;
}

jetty::CopiedInPost Passes::copy_timed(uint32_t jetty, std::span<const Work> works) {
  StageTimer stages(*stages_);
  const jetty::CopiedInPost copied = engine_.copy_in_post(jetty, works, copies_left_);
  if (copied.works > 0) stages.ended(Stage::copy_in_post);
  return copied;
}

// The peer waits for the work that is posted first after something has arrived. So the packet is
// sent first; recording the work and reading the clock come after it.
bool Passes::send_ahead(uint32_t jetty, const Keeper& keeper) {
  if (!token_.take()) return false;
  expects_post_.store(false, std::memory_order_relaxed);
  const uint64_t begin = stages_ != nullptr ? stages_->now() : 0;
  const bool may = !keeper.service_keeps();
  const jetty::DoneAhead sent = may ? engine_.send_ahead(jetty) : jetty::DoneAhead{};
  bool rouse = false;
  if (sent) {
    const Time machine = machine_time();
    const Time now = next_deadline_ = time_.advance(machine, next_deadline_);
    engine_.take_sent_ahead(jetty, sent, now);
    if (report_at_ == never && reporting_) report_at_ = machine + Reporter::interval;
    rouse = next_pass_is_sure() ? engine_.take_kick() : plan_next(now);
    if (stages_ != nullptr) {
      stages_->add(sent.sent ? Stage::send_ahead : Stage::copy_in_post, begin, stages_->now());
    }
  }
  token_.drop();
  if (rouse) waker_.wake();
  return static_cast<bool>(sent);
}

}  // namespace urma::engine
