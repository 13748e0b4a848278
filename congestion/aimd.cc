// SPDX-License-Identifier: Apache-2.0
#include "congestion/aimd.h"

#include <algorithm>

namespace urma::congestion {
namespace {

constexpr uint64_t initial_packets = 32;
// With a smaller window, too few packets follow a lost one to reveal the loss.
constexpr uint64_t least_packets = 4;

}  // namespace

Aimd::Aimd(const Settings& settings)
    : limit_(std::max<uint64_t>(settings.limit_bytes, 1)),
      window_(initial_packets * settings.packet_bytes),
      threshold_(limit_),
      packet_(settings.packet_bytes) {
  clamp();
}

void Aimd::clamp() {
  window_ = std::clamp(window_, std::min(least_packets * packet_, limit_), limit_);
}

void Aimd::handle(const Acknowledged& event) {
  if (event.bytes == 0) return;
  // A window that is not full says nothing about the path, so it does not grow.
  if (event.inflight_bytes * 2 < window_) return;
  if (window_ < threshold_) {
    window_ += event.bytes;
  } else {
    window_ += std::max<uint64_t>(event.bytes * packet_ / window_, 1);
  }
  clamp();
}

void Aimd::handle(const Lost& event) {
  if (event.now < recovery_until_ && !event.timed_out) return;
  recovery_until_ = event.now + event.rtt;
  threshold_ = std::max(window_ * 7 / 10, least_packets * packet_);
  window_ = event.timed_out ? least_packets * packet_ : threshold_;
  clamp();
}

}  // namespace urma::congestion
