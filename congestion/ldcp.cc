// SPDX-License-Identifier: Apache-2.0
#include "congestion/ldcp.h"

#include <algorithm>

#include "congestion/arithmetic.h"

namespace urma::congestion {
namespace {

constexpr double alpha = 1;                // packets by which a window grows in a round trip
constexpr double beta = 0.5;               // of the marked bytes, taken from the window
constexpr double least_left = 0.5;         // of a window, after one acknowledgement
constexpr uint64_t presumed_packets = 32;  // that an unknown path holds
constexpr double loss_factor = 0.5;

}  // namespace

Ldcp::Ldcp(const Settings& settings)
    : limit_(std::max<uint64_t>(settings.limit_bytes, 1)),
      packet_(std::max<uint32_t>(settings.packet_bytes, 1)) {
  const double path = settings.bytes_per_second * seconds(settings.base_rtt);
  set_window(path > 0 ? path : static_cast<double>(presumed_packets * packet_));
}

void Ldcp::set_window(double bytes) {
  const auto most = static_cast<double>(limit_);
  window_ = std::clamp(bytes, std::min<double>(packet_, most), most);
}

uint64_t Ldcp::window_bytes() const { return whole_bytes(window_, limit_); }

void Ldcp::handle(const Acknowledged& event) {
  const uint64_t reported = event.feedback == nullptr ? 0 : event.feedback->marked_bytes;
  // Marks of packets that were acknowledged before count, too.
  const auto marked = static_cast<double>(reported);
  const auto unmarked = static_cast<double>(event.bytes - std::min(event.bytes, reported));
  const double before = window_;
  // A window that is not full says nothing about the path, so it does not grow.
  if (static_cast<double>(event.inflight_bytes) * 2 >= window_) {
    set_window(window_ + alpha * packet_ * std::min(unmarked / window_, 1.0));
  }
  if (marked > 0) {
    set_window(std::max(window_ - beta * marked, least_left * before));
    undo_ = 0;  // the window before a loss was too large in any case
  }
}

void Ldcp::handle(const Lost& event) {
  if (event.now < recovery_until_ && !event.timed_out) return;
  recovery_until_ = event.now + event.rtt;
  undo_ = window_;
  set_window(event.timed_out ? packet_ : window_ * loss_factor);
}

void Ldcp::handle(const Spurious&) {
  if (undo_ > 0) set_window(std::max(window_, undo_));
  undo_ = 0;
}

}  // namespace urma::congestion
