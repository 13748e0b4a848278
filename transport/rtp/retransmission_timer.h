// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "transport/rtp/loss.h"
#include "transport/rtp/rtt.h"
#include "transport/rtp/waits.h"

namespace urma::transport {

// Decides how long a sender waits for an acknowledgement and what it does when none arrives, and
// learns from the next one whether that was right. The timer does not know packets or windows: the
// channel that owns it carries out what `expire` returns.
//
// In mode rack, a time-out is a question, not a verdict (F-RTO, RFC 5682): a few packets are sent
// again as questions, none is taken for lost, and the congestion window stays. If the peer was not
// scheduled, all packets have arrived, and its acknowledgements show that when it runs again. If
// packets were lost, the answer to the questions shows which, a round trip later. In the other
// modes a time-out means that packets are lost, as UB specifies it (UB 4.4.1).
class RetransmissionTimer {
 public:
  // `first_rtt`: the round trip measured during set-up; zero if none was.
  explicit RetransmissionTimer(Duration first_rtt) : rtt_(first_rtt) {}

  const RttEstimator& rtt() const { return rtt_; }
  void add(Duration sample) {
    // The estimate has proved too short, so it says nothing about this path any more. After a
    // question the sample may include the wait for it, because the first acknowledgement was lost.
    const bool unasked = asked_at_ == Time{};
    if (unasked && proven() > Duration{} && sample > rtt_.smoothed()) {
      rtt_.restart(sample);
    } else {
      rtt_.add(sample);
    }
  }

  bool running() const { return at_ != never; }
  Time deadline() const { return at_; }
  // Returns the number of time-outs since the channel last made progress.
  unsigned timeouts_in_row() const { return timeouts_in_row_; }

  // Restarts the wait: the first packet has been sent, or packets were acknowledged and others are
  // still outstanding.
  void start(const Retransmission& mode, const Waits& waits, Time now) {
    if (duplicates_due_ > 0) prove({});
    const Duration patience = time_out(mode, waits, timeouts_in_row_);
    at_ = now + patience;
    probe_next_ = 0;
    if (mode.trigger != Retransmission::Trigger::rack) return;
    const Duration until_probe = until_question(waits);
    probe_next_ = timeouts_in_row_ == 0 && until_probe < patience ? 1 : 0;
    if (probe_next_ != 0) at_ = now + until_probe;
  }
  void stop() { at_ = never; }

  enum class Action : uint8_t {
    none,      // the deadline is not reached
    probe,     // send the last packet again, as a question
    time_out,  // mode rack: send the first packets again, as questions; else all are lost
  };
  // Returns what the channel has to do now, and starts the next wait if that is not `none`.
  Action expire(const Retransmission& mode, const Waits& waits, Time now) {
    if (now < at_) return Action::none;
    if (mode.trigger == Retransmission::Trigger::rack) asked_at_ = now;
    if (probe_next_ != 0) {
      probe_next_ = 0;
      note_questions(1);
      // The time-out stays where it was, but leaves enough time for the answer to the probe.
      const Duration rest = time_out(mode, waits, 0) - probe_after(waits);
      at_ = now + std::max(rest, 2 * rtt_.smoothed());
      return Action::probe;
    }
    if (timeouts_in_row_ < most_timeouts) ++timeouts_in_row_;
    // The tolerance for a late peer extends only the first wait: this silence may have another
    // cause.
    const Duration least = std::max(least_timeout(waits), proven());
    at_ = now + transport::time_out(mode, rtt_, timeouts_in_row_, least);
    return Action::time_out;
  }

  // This many packets are sent as questions.
  void note_questions(uint32_t count) {
    questions_ = std::min(questions_ + count, many_questions) & many_questions;
  }

  // Returns whether the peer was found not running recently, more often than packets were lost.
  bool peer_was_late() const { return late_.tolerated() > Duration{}; }
  // Returns whether this time-out sends one question only. One is enough for a peer that was late,
  // but not if packets are being lost. `answered`: the channel asks switches for its
  // rate, so its packets rather wait in a queue, which more questions would make longer.
  bool asks_once(bool answered) const {
    return (answered || peer_was_late()) && timeouts_in_row_ == 1;
  }
  // An acknowledgement has shown that packets were lost. The timer then tolerates less lateness,
  // because waiting costs throughput.
  void note_lost() {
    late_.learn(false);
    prove({});
  }

  // Judges the last questions by an acknowledgement that brings news. `answered`: set if it
  // acknowledges a question; true if it came within the time that an answer takes.
  // `oldest_first_copy`: when the oldest newly acknowledged packet left, of those that were sent
  // once. Returns true if there was a time-out and it was right: packets were lost, and the network
  // may be congested.
  bool settle(std::optional<bool> answered, Time oldest_first_copy, const Retransmission& mode,
              const Waits& waits, Time now) {
    duplicates_due_ = 0;
    if (asked_at_ == Time{}) return false;
    const bool arrived = oldest_first_copy < asked_at_;
    const bool in_time = answered.value_or(false) && !arrived;
    // An acknowledgement that is not much later is not a sign of a late peer: the one before may
    // have been lost.
    const bool late = !in_time && now - asked_at_ > waits.late_after();
    if (!answered && !arrived) return false;
    learn_wait(waited(mode, waits), now - asked_at_);
    if (in_time || late) late_.learn(late);
    asked_at_ = {};
    questions_ = 0;
    return timeouts_in_row_ > 0 && in_time;
  }
  // An acknowledgement brings no news, so a packet has arrived twice. If all questions did that,
  // none was needed, and the next ones wait for twice as long.
  void note_duplicate(const Waits& waits) {
    if (duplicates_due_ > 0 && --duplicates_due_ == 0) prove(2 * until_question(waits));
  }
  // The channel has made progress: the next wait is the shortest one again, except for a proven
  // one. `measured`: the acknowledgement measures a round trip, which ends that, too.
  void note_progress(bool measured) {
    timeouts_in_row_ = 0;
    if (measured) prove({});
  }

  // A running peer answers a question immediately. An acknowledgement later than this is not an
  // answer: the peer was not running.
  Duration longest_answer() const { return 2 * rtt_.smoothed() + answer_slack; }
  Duration time_out(const Retransmission& mode, const Waits& waits, unsigned tries) const {
    return transport::time_out(mode, rtt_, tries,
                               std::max({late_.tolerated(), least_timeout(waits), proven()}));
  }

 private:
  // A question that was acknowledged too late for an answer was sent before the acknowledgement of
  // the first copy could come. A packet that was sent twice measures no round trip, so nothing
  // would prevent that each packet is sent twice. Therefore, until a round trip is measured, no
  // wait is shorter than the time that this acknowledgement took (after RFC 6298, 5.7, which keeps
  // the doubling). Zero if no wait has proved too short.
  Duration proven() const { return proven_wait_ * proven_unit; }
  void prove(Duration wait) {
    duplicates_due_ = 0;
    const auto units = (wait + proven_unit - Duration(1)) / proven_unit;
    proven_wait_ = static_cast<uint32_t>(std::min<int64_t>(units, most_proven)) & most_proven;
  }
  // A question was sent `waited` after the first copy of its packet, and is acknowledged `later`.
  void learn_wait(Duration waited, Duration later) {
    if (later <= longest_answer()) {
      // The first copy is lost, and this is the answer, unless each question will be acknowledged,
      // too, before the next wait begins.
      if (questions_ == many_questions) return prove({});
      duplicates_due_ = questions_;
      return;
    }
    // If the wait was a proven one, and this is soon after it, the first copy is lost: waits would
    // otherwise grow with each loss.
    const bool lost = waited + later < proven() * 3 / 2;
    prove(lost ? Duration{} : waited + later);
  }
  // Returns for how long there may be no news before the first question.
  Duration until_question(const Waits& waits) const {
    return std::max({probe_after(waits), late_.tolerated(), proven()});
  }
  // Returns how long before the last question the first copy of its packet left.
  Duration waited(const Retransmission& mode, const Waits& waits) const {
    if (timeouts_in_row_ == 0) return until_question(waits);
    return time_out(mode, waits, timeouts_in_row_) - time_out(mode, waits, 0);
  }
  Duration least_timeout(const Waits& waits) const { return waits.least_timeout(rtt_.smoothed()); }
  Duration probe_after(const Waits& waits) const {
    return transport::probe_after(rtt_, waits.answer_delay(rtt_.smoothed()));
  }

  // The time in which a processor wakes up for a packet.
  static constexpr Duration answer_slack = std::chrono::microseconds(100);
  static constexpr unsigned most_timeouts = (1 << 9) - 1;
  static constexpr uint32_t many_questions = 3;           // this many or more are not counted
  static constexpr Duration proven_unit{1 << 18};         // 262 us
  static constexpr uint32_t most_proven = (1 << 10) - 1;  // 268 ms, more than `most_timeout`

  RttEstimator rtt_;
  Time at_ = never;
  Time asked_at_{};  // the latest question that is not judged; Time{}: none
  // Bits, which keep an idle channel small.
  uint32_t timeouts_in_row_ : 9 = 0;
  uint32_t probe_next_ : 1 = 0;  // whether the next expiry sends a probe
  uint32_t proven_wait_ : 10 = 0;
  uint32_t questions_ : 2 = 0;       // since the last news
  uint32_t duplicates_due_ : 2 = 0;  // before these questions are known to have been unneeded
  LatenessTolerance late_;
};

}  // namespace urma::transport
