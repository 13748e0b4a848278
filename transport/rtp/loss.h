// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "transport/rtp/rtt.h"
#include "urma/core/ids.h"
#include "urma/core/retransmission.h"

// The rules by which packets are taken for lost, and by which the sender stops waiting. Tp applies
// them to the packets of its SentWindow. The classes below hold the state of the rules; none of
// them knows a packet.

namespace urma::transport {

// Returns whether a packet that another one overtakes is taken for lost in this mode: the sender
// sends it again unnecessarily, or the receiver drops the packet that came early.
constexpr bool takes_overtaking_for_loss(const Retransmission& mode) {
  return mode.scope == Retransmission::Scope::go_back_n ||
         mode.trigger == Retransmission::Trigger::fast || !mode.keeps_out_of_order;
}

// The evidence of an acknowledgement, as limits of number and time, so that `is_lost` costs the
// same in each mode. A packet that was sent again is judged by time only: its number says nothing
// about when it was last sent.
struct LossEvidence {
  Psn through{};        // later packets are not judged
  Psn first_number{};   // a packet that was sent once is lost from this number on...
  Psn last_number{};    // ...up to and including this one
  Time once_before{};   // a packet that was sent once is lost if it left before this
  Time again_before{};  // a packet that was sent again is lost if its last copy left before this
};

// `sent`: when the last copy left. `again`: whether there is more than one copy.
constexpr bool is_lost(Psn psn, Time sent, bool again, const LossEvidence& evidence) {
  if (again) return sent < evidence.again_before;
  return (psn >= evidence.first_number && psn <= evidence.last_number) ||
         sent < evidence.once_before;
}

// ---- mode rack: by time; until a packet has been overtaken also by number (OURS; RFC 8985)

// How much later than its successors a packet may arrive before it is taken for lost: one to four
// quarters of a round trip. It grows when packets turn out to have been sent again unnecessarily.
class ReorderTolerance {
 public:
  // `overtaken`: an acknowledgement has shown that an earlier packet arrived after a later one.
  // `in_vain`: a packet was acknowledged sooner than its second copy can have arrived.
  void learn(bool overtaken, bool in_vain) {
    seen_ = seen_ || overtaken || in_vain;
    if (in_vain) {
      quarters_ = std::min<uint8_t>(quarters_ + 1, most_quarters);
      calm_ = 0;
    }
  }
  // Packets were taken for lost and nothing contradicts that. After 16 such calls in a row the
  // tolerance shrinks by a quarter of a round trip, because the path may have changed.
  void calm() {
    if (++calm_ < calm_after) return;
    calm_ = 0;
    if (quarters_ > 1) --quarters_;
  }

  // Returns whether a packet was ever overtaken or sent again unnecessarily.
  bool seen() const { return seen_; }
  Duration window(Duration round_trip) const { return round_trip * quarters_ / most_quarters; }

 private:
  static constexpr uint8_t most_quarters = 4;
  static constexpr uint8_t calm_after = 16;

  bool seen_ = false;
  uint8_t quarters_ = 1;  // of a round trip
  uint8_t calm_ = 0;
};

// Remembers the packet that was sent last among those that are known to have arrived, and how long
// it took. A packet of the same burst counts as sent before it: the times of a burst are equal, and
// the numbers within a burst rise.
class LatestArrival {
 public:
  void note(Time sent, Time now) {
    if (sent < sent_) return;
    sent_ = sent;
    took_ = now - sent;
  }

  Time sent() const { return sent_; }

  // A packet that left before the remembered one is lost once it has been under way for as long as
  // that one was, plus `tolerance`. `through`: the highest number ever acknowledged.
  // `reorder_packets`: if not 0, a packet this far behind `through` is lost immediately.
  LossEvidence evidence(Psn through, Duration tolerance, uint32_t reorder_packets, Time now) const {
    LossEvidence out{.through = through};
    out.once_before = out.again_before = std::min(sent_ + burst, now - took_ - tolerance);
    if (reorder_packets > 0) out.last_number = through - reorder_packets;
    return out;
  }
  // Returns when a packet sent at `sent` will be lost by this rule; `never` if it left after the
  // remembered one.
  Time patience(Time sent, Duration tolerance) const {
    return sent < sent_ + burst ? sent + took_ + tolerance + Duration(1) : never;
  }

 private:
  static constexpr Duration burst{256};  // the resolution of times in SentWindow: 256 ns

  Time sent_{};
  Duration took_{};
};

// ---- modes fast, selective: a packet that a TPSACK reports as missing is lost

// Records which packets have been sent again, so that a TPSACK does not cause a third copy too
// early: for another round trip TPSACKs still report them as missing (UB 4.4.14, UB 4.4.15). A hole
// above HighRtxPSN is new. Below it every new packet serves as a mark: once it has arrived, a
// packet that was sent again before it and is still missing has been lost again. (UB has one
// MarkPSN, the first new packet after all lost packets were sent again. Where losses are frequent,
// a packet that is lost again then waits for two round trips.)
class SentAgain {
 public:
  explicit SentAgain(Psn first) : high_(first - 1) {}

  void sent_again(Psn psn) { high_ = std::max(high_, psn); }
  // `reported`: the last packet that the TPACK or TPSACK reports on. `newest`: when the latest of
  // the newly acknowledged packets left, of those that were sent once. A packet that was sent again
  // in the same burst left before it.
  LossEvidence evidence(Psn reported, Time newest) const {
    return {.through = reported,
            .first_number = high_ + 1,
            .last_number = reported,
            .again_before = newest + Duration(1)};
  }

 private:
  Psn high_;  // HighRtxPSN
};

// Returns the last packet that a TPSACK reports on. UB 4.4.8: the report covers
// [PSN + 1, min(MaxRcvPSN, PSN + BitMapSize)]; the first bit of the bitmap is PSN itself.
constexpr Psn last_reported(Psn through, Psn highest, uint32_t bits) {
  return std::clamp(highest, through, through + (bits - 1));
}

// ---- time-outs

// Returns whether a time-out is a question (RetransmissionTimer). With several routes it is not: a
// route that has failed is silent, too, and its packets have to leave over the others immediately.
constexpr bool asks_at_time_out(const Retransmission& mode, bool several_routes) {
  return mode.trigger == Retransmission::Trigger::rack && !several_routes;
}

// Returns the time-out that follows `tries` time-outs in a row: a constant (UB 4.4.17), or Base *
// 2^(N * Times) (UB 4.4.18), or one that follows the measured round trips and, without time-outs
// before, is at least `least`.
inline Duration time_out(const Retransmission& mode, const RttEstimator& rtt, unsigned tries,
                         Duration least) {
  if (mode.rto == Retransmission::Rto::measured) return rtt.timeout(tries, least);
  if (mode.rto == Retransmission::Rto::fixed) return mode.rto_base;
  const unsigned doublings = std::min(mode.rto_exponent * tries, 30u);
  return std::min(mode.rto_base * (int64_t{1} << doublings), RttEstimator::most_timeout);
}

// How long the sender waits for a peer that is sometimes not scheduled: twice as long each time
// that the peer was found late, half as long each time that packets were lost. A question to a late
// peer is sent unnecessarily if nothing is lost; if packets are lost, waiting costs throughput.
class LatenessTolerance {
 public:
  // `late`: the peer was not running; otherwise a packet was lost.
  void learn(bool late) {
    if (late) {
      score_ = std::min<uint8_t>(score_ + 2, most_score);
    } else {
      score_ = static_cast<uint8_t>(std::max(score_ - 2, 0));
    }
  }

  // Returns how long after the last news no question is sent. Zero until the peer was found late.
  Duration tolerated() const {
    const unsigned doublings = score_ / 2u;
    return doublings == 0 ? Duration{} : shortest * (int64_t{1} << (doublings - 1));
  }

 private:
  static constexpr Duration shortest = std::chrono::milliseconds(1);
  static constexpr uint8_t most_score = 10;  // 16 ms

  uint8_t score_ = 0;
};

// Returns after how long without news the last packet is sent again as a question (a probe). Its
// answer shows which packets are missing, and costs one packet. `answer_delay`: for how long the
// receiver may hold an acknowledgement back.
inline Duration probe_after(const RttEstimator& rtt, Duration answer_delay) {
  return 2 * rtt.smoothed() + answer_delay;
}

}  // namespace urma::transport
