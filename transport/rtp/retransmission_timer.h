#pragma once

#include <cstdint>
#include <optional>

#include "transport/rtp/loss.h"
#include "transport/rtp/rtt.h"

namespace urma::transport {

// How long a sender waits for an acknowledgement, what it does then, and what the next one says
// about that. It does not know packets or windows: its channel does what `expire` returns.
//
// In mode rack, a time-out is a question, not a verdict (F-RTO, RFC 5682): a few packets are sent
// again, nothing is taken for lost, and the congestion window stays. If the peer was not scheduled,
// everything has arrived, and its acknowledgements say so when it runs again. If packets were lost,
// the answer is the evidence of that, a round trip later. In the other modes a time-out means that
// packets are lost, as UB specifies it (UB 4.4.1).
class RetransmissionTimer {
 public:
  // How long a receiver holds an acknowledgement back, at most.
  static constexpr Duration most_ack_delay = std::chrono::microseconds(400);

  // `first_rtt`: the round trip of the set-up.
  explicit RetransmissionTimer(Duration first_rtt) : rtt_(first_rtt) {}

  const RttEstimator& rtt() const { return rtt_; }
  void add(Duration sample) { rtt_.add(sample); }

  bool running() const { return at_ != never; }
  Time deadline() const { return at_; }
  // Time-outs since the last acknowledgement with news.
  uint16_t timeouts_in_row() const { return timeouts_in_row_; }

  // Something is outstanding, or was acknowledged and more is outstanding.
  void start(const Retransmission& mode, Time now) {
    const Duration patience = time_out(mode, timeouts_in_row_);
    at_ = now + patience;
    probe_next_ = false;
    if (mode.trigger != Retransmission::Trigger::rack) return;
    const Duration until_probe = std::max(probe_after(rtt_, most_ack_delay), late_.tolerated());
    probe_next_ = timeouts_in_row_ == 0 && until_probe < patience;
    if (probe_next_) at_ = now + until_probe;
  }
  void stop() { at_ = never; }

  enum class Action : uint8_t {
    none,      // it is too early
    probe,     // the last packet is sent again, as a question
    time_out,  // mode rack: the first packets are sent again, as questions; else all is lost
  };
  Action expire(const Retransmission& mode, Time now) {
    if (now < at_) return Action::none;
    if (mode.trigger == Retransmission::Trigger::rack) asked_at_ = now;
    if (probe_next_) {
      probe_next_ = false;
      // Enough time for the answer, and the time-out where it was.
      const Duration rest = time_out(mode, 0) - probe_after(rtt_, most_ack_delay);
      at_ = now + std::max(rest, 2 * rtt_.smoothed());
      return Action::probe;
    }
    if (timeouts_in_row_ < UINT16_MAX) ++timeouts_in_row_;
    // Only the first wait is longer for a peer that was late: this silence may be another one.
    at_ = now + transport::time_out(mode, rtt_, timeouts_in_row_);
    return Action::time_out;
  }

  // The peer did not run when the last questions were asked, and nothing was lost since.
  bool peer_was_late() const { return late_.tolerated() > Duration{}; }
  // One packet is enough to ask a peer that was late. It is not if packets are being lost.
  bool asks_once() const { return peer_was_late() && timeouts_in_row_ == 1; }
  // An acknowledgement has shown that packets were lost: to wait for late answers costs more there.
  void note_lost() { late_.learn(false); }

  // An acknowledgement has brought news. `answered`: it acknowledges a question, and whether in the
  // time that an answer takes. `oldest_first_copy`: when the oldest of the packets has left that it
  // newly acknowledges and that were sent once. Returns whether time-outs since the last news were
  // right: packets were lost, and the network may be congested.
  bool settle(std::optional<bool> answered, Time oldest_first_copy, Time now) {
    if (asked_at_ == Time{}) return false;
    const bool arrived = oldest_first_copy < asked_at_;
    const bool in_time = answered.value_or(false) && !arrived;
    // An acknowledgement that comes soon may only follow one that was lost.
    const bool late = !in_time && now - asked_at_ > RttEstimator::least_timeout;
    if (!answered && !arrived) return false;
    if (in_time || late) late_.learn(late);
    asked_at_ = {};
    return timeouts_in_row_ > 0 && in_time;
  }
  // The channel has made progress: waits begin with the shortest one again.
  void reset() { timeouts_in_row_ = 0; }

  // A question is answered at once. What comes later is not its answer: the peer did not run.
  Duration longest_answer() const { return 2 * rtt_.smoothed() + answer_slack; }
  Duration time_out(const Retransmission& mode, unsigned tries) const {
    return transport::time_out(mode, rtt_, tries, late_.least_timeout());
  }

 private:
  // A processor takes so long to wake up for a packet.
  static constexpr Duration answer_slack = std::chrono::microseconds(100);

  RttEstimator rtt_;
  Time at_ = never;
  Time asked_at_{};  // the latest question since the last news; Time{}: none
  uint16_t timeouts_in_row_ = 0;
  bool probe_next_ = false;  // when the timer expires, a probe is sent
  LatenessTolerance late_;
};

}  // namespace urma::transport
