// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_ping/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace urma::apps::ping {

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void Statistics::note_answer(Duration round_trip) {
  const double now_ms = milliseconds(round_trip);
  least_ms_ = received_ == 0 ? now_ms : std::min(least_ms_, now_ms);
  most_ms_ = std::max(most_ms_, now_ms);
  const double before = mean_ms_;
  mean_ms_ += (now_ms - before) / static_cast<double>(++received_);
  squares_ += (now_ms - before) * (now_ms - mean_ms_);
}

std::string Statistics::text(Duration whole) const {
  const auto sent = static_cast<double>(sent_);
  const double lost = sent_ == 0 ? 0 : 100 * static_cast<double>(sent_ - received_) / sent;
  const double spread = received_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(received_));
  return fmt::format(
      "{} packets transmitted, {} received, {:.1f}% packet loss, time {:.0f}ms\n"
      "rtt min/avg/max/mdev = {:.3f}/{:.3f}/{:.3f}/{:.3f} ms\n",
      sent_, received_, lost, milliseconds(whole), least_ms_, mean_ms_, most_ms_, spread);
}

}  // namespace urma::apps::ping
