#pragma once

#include <algorithm>

#include "transport/rtp/rtt.h"
#include "urma/core/ids.h"
#include "urma/core/retransmission.h"

// Which packets are lost, and when to stop waiting: the rules, one function each. What they are
// asked about is in SentWindow, what they remember in the structs here; who asks is Tp.

namespace urma::transport {

// Whether what another packet overtakes is sent again, or dropped, in vain.
constexpr bool takes_overtaking_for_loss(const Retransmission& mode) {
  return mode.scope == Retransmission::Scope::go_back_n ||
         mode.trigger == Retransmission::Trigger::fast || !mode.keeps_out_of_order;
}

// What an acknowledgement has shown, in the form of limits, so that asking about a packet costs the
// same in each mode. A packet that was sent again is judged by time only: its number is old.
struct LossEvidence {
  Psn through{};       // packets after this one are not asked about
  Psn first_number{};  // a packet sent once is lost from this number...
  Psn last_number{};   // ...through this one
  Time once_before{};  // a packet sent once is lost if it was sent before this
  Time again_before{};
};

constexpr bool is_lost(Psn psn, Time sent, bool again, const LossEvidence& evidence) {
  if (again) return sent < evidence.again_before;
  return (psn >= evidence.first_number && psn <= evidence.last_number) ||
         sent < evidence.once_before;
}

// ---- rack: by time, and as long as nothing overtakes anything, by number (OURS; RFC 8985)

// How much later than its successors a packet may arrive. It grows when packets turn out to have
// been sent again in vain.
class ReorderTolerance {
 public:
  // What an acknowledgement says of it: an earlier packet came after a later one; a packet was
  // acknowledged sooner than its second copy can have arrived.
  void learn(bool overtaken, bool in_vain) {
    seen_ = seen_ || overtaken || in_vain;
    if (in_vain) {
      quarters_ = std::min<uint8_t>(quarters_ + 1, most_quarters);
      calm_ = 0;
    }
  }
  // Losses that were believed rightly, for a long time: the path may have become another one.
  void calm() {
    if (++calm_ < calm_after) return;
    calm_ = 0;
    if (quarters_ > 1) --quarters_;
  }

  bool seen() const { return seen_; }
  Duration window(Duration round_trip) const { return round_trip * quarters_ / most_quarters; }

 private:
  static constexpr uint8_t most_quarters = 4;
  static constexpr uint8_t calm_after = 16;

  bool seen_ = false;
  uint8_t quarters_ = 1;  // of a round trip
  uint8_t calm_ = 0;
};

// Of all packets that are known to have come, the one that was sent last. What left in the same
// burst, as far as times tell, left before it: numbers within a burst rise.
class LatestArrival {
 public:
  void note(Time sent, Time now) {
    if (sent < sent_) return;
    sent_ = sent;
    took_ = now - sent;
  }

  Time sent() const { return sent_; }

  // What left before it has had as long as it, and the tolerance. `through`: the highest that was
  // ever acknowledged. Not 0 `reorder_packets`: so far behind that one it need not wait, either.
  LossEvidence evidence(Psn through, Duration tolerance, uint32_t reorder_packets, Time now) const {
    LossEvidence out{.through = through};
    out.once_before = out.again_before = std::min(sent_ + burst, now - took_ - tolerance);
    if (reorder_packets > 0) out.last_number = through - reorder_packets;
    return out;
  }
  // When there will be such evidence of a packet.
  Time patience(Time sent, Duration tolerance) const {
    return sent < sent_ + burst ? sent + took_ + tolerance + Duration(1) : never;
  }

 private:
  static constexpr Duration burst{256};  // to which SentWindow notes times

  Time sent_{};
  Duration took_{};
};

// ---- fast, selective: what a TPSACK reports as missing is lost

// UB 4.4.14, UB 4.4.15: what was sent again once is reported missing for another round trip. Above
// HighRtxPSN a hole is new. For the others any new packet is a mark: when it has come, what was
// sent again before it and is still missing is lost again. (UB has one MarkPSN, the first new
// packet after all that was lost had been sent again; what is lost again then waits for two round
// trips where losses are frequent.)
class SentAgain {
 public:
  explicit SentAgain(Psn first) : high_(first - 1) {}

  void sent_again(Psn psn) { high_ = std::max(high_, psn); }
  // `reported`: the last packet that a TPACK or TPSACK says something about; `newest`: when the
  // latest of the new packets that it acknowledges was sent. What leaves with it, leaves before it.
  LossEvidence evidence(Psn reported, Time newest) const {
    return {.through = reported,
            .first_number = high_ + 1,
            .last_number = reported,
            .again_before = newest + Duration(1)};
  }

 private:
  Psn high_;  // HighRtxPSN
};

// UB 4.4.8: a TPSACK says something about [PSN + 1, min(MaxRcvPSN, PSN + BitMapSize)]; of its bits
// the first one is PSN itself.
constexpr Psn last_reported(Psn through, Psn highest, uint32_t bits) {
  return std::clamp(highest, through, through + (bits - 1));
}

// ---- time

// After `tries` time-outs in a row. UB 4.4.17: one figure; UB 4.4.18: Base * 2^(N * Times); else
// what was measured.
inline Duration time_out(const Retransmission& mode, const RttEstimator& rtt, unsigned tries,
                         Duration least = RttEstimator::least_timeout) {
  if (mode.rto == Retransmission::Rto::measured) return rtt.timeout(tries, least);
  if (mode.rto == Retransmission::Rto::fixed) return mode.rto_base;
  const unsigned doublings = std::min(mode.rto_exponent * tries, 30u);
  return std::min(mode.rto_base * (int64_t{1} << doublings), RttEstimator::most_timeout);
}

// How long a peer is waited for that is not scheduled now and then: twice as long each time that it
// was found late, half as long each time that packets were lost. Where nothing is lost, a question
// to such a peer is sent unnecessarily; where packets are lost, waiting costs throughput.
class LatenessTolerance {
 public:
  // `late`: the peer did not run; otherwise a packet was lost.
  void learn(bool late) {
    if (late) {
      score_ = std::min<uint8_t>(score_ + 2, most_score);
    } else {
      score_ = static_cast<uint8_t>(std::max(score_ - 2, 0));
    }
  }

  // No question is asked before; zero while nothing has been learnt.
  Duration tolerated() const {
    const unsigned doublings = score_ / 2u;
    return doublings == 0 ? Duration{} : shortest * (int64_t{1} << (doublings - 1));
  }
  Duration least_timeout() const { return std::max(tolerated(), RttEstimator::least_timeout); }

 private:
  static constexpr Duration shortest = std::chrono::milliseconds(1);
  static constexpr uint8_t most_score = 10;  // 16 ms

  uint8_t score_ = 0;
};

// After so long without news the last packet is sent again, as a question: its answer shows what
// else is missing, for the price of one packet. A receiver may hold its answer back meanwhile.
inline Duration probe_after(const RttEstimator& rtt, Duration answer_delay) {
  return 2 * rtt.smoothed() + answer_delay;
}

}  // namespace urma::transport
