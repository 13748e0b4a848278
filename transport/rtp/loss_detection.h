// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "transport/rtp/loss.h"
#include "transport/rtp/sent_window.h"

namespace urma::transport {

// Finds the lost packets of a channel by what acknowledgements say, with the rules of the channel's
// mode (loss.h), and marks them in its SentWindow. It owns the state of these rules. It does not
// know time-outs, and does not decide what a loss means for the congestion window. Tp owns it.
class LossDetection {
 public:
  // `first`: the number of the first packet.
  explicit LossDetection(Psn first) : sent_again_(first) {}

  // How long packets take, and by how much those of different routes overtake each other.
  struct Times {
    Duration rtt{};
    Duration spread{};
  };
  // Marks the packets that `news`, an acknowledgement, shows to be lost. Returns their bytes.
  // `reported`: the last packet that it reports on. Modes whose losses only a time-out repairs
  // (UB 4.4.10) do not call it.
  uint64_t find(const Retransmission& mode, SentWindow& sent,
                const SentWindow::Acknowledgement& news, Psn reported, const Times& times, Time now,
                SentWindow::Pool& pool) {
    return mark(mode, sent, evidence(mode, sent, news, reported, times, now), times, now, pool);
  }
  // Mode rack: returns when a packet that others have overtaken becomes lost, or `never`.
  Time deadline() const { return overtaken_until_; }
  // Marks the packets that have become lost by the deadline. Returns their bytes.
  uint64_t find_late(const Retransmission& mode, SentWindow& sent, const Times& times, Time now,
                     SentWindow::Pool& pool) {
    const auto late = latest_.evidence(sent.highest_acknowledged(), tolerance(times), 0, now);
    return mark(mode, sent, late, times, now, pool);
  }
  // A lost packet leaves again.
  void sent_again(Psn psn) { sent_again_.sent_again(psn); }
  // Packets were taken for lost, by whatever rule.
  void calm() { tolerance_.calm(); }

 private:
  // Returns the tolerance for packets of different routes.
  Duration tolerance(const Times& times) const {
    return tolerance_.window(times.rtt) + times.spread;
  }
  LossEvidence evidence(const Retransmission& mode, const SentWindow& sent,
                        const SentWindow::Acknowledgement& news, Psn reported, const Times& times,
                        Time now) {
    if (mode.trigger == Retransmission::Trigger::fast) {
      return sent_again_.evidence(reported, news.rtt ? now - *news.rtt : Time{});
    }
    if (news.overtaken || news.in_vain) tolerance_.learn(news.overtaken, news.in_vain);
    latest_.note(news.newest_sent, now);
    const bool by_number = !tolerance_.seen() && !sent.routes().several();
    return latest_.evidence(std::max(news.highest, sent.highest_acknowledged()), tolerance(times),
                            by_number ? mode.reorder_packets : 0, now);
  }
  uint64_t mark(const Retransmission& mode, SentWindow& sent, const LossEvidence& evidence,
                const Times& times, Time now, SentWindow::Pool& pool) {
    const auto missing = sent.mark_lost(evidence, tolerance_.window(times.rtt), now, pool);
    if (mode.trigger == Retransmission::Trigger::rack) {
      const Time until = latest_.patience(missing.oldest_sent, tolerance(times));
      overtaken_until_ = std::min(until, missing.until);
    }
    return missing.lost_bytes;
  }

  LatestArrival latest_;          // mode rack
  Time overtaken_until_ = never;  // mode rack
  SentAgain sent_again_;          // modes fast, selective
  ReorderTolerance tolerance_;    // mode rack
};

}  // namespace urma::transport
