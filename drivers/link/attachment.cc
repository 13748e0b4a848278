// SPDX-License-Identifier: Apache-2.0
#include "drivers/link/attachment.h"

#include <algorithm>

namespace urma::drivers::link {

LinkControl Attachment::message_of(LinkMessage type) const {
  return {.type = type,
          .cna = settings_.cna,
          .rated = type == LinkMessage::attach,
          .mtu_log2 = settings_.mtu_log2,
          .nonce = settings_.nonce,
          .cookie = cookie_};
}

std::optional<LinkControl> Attachment::due(Time now) {
  if (now < next_) return std::nullopt;
  if (state_ == State::attached && now >= lease_ends_) state_ = State::asking;
  sent_ = now;
  next_ = now + ask_again;
  return message_of(LinkMessage::attach);
}

void Attachment::handle(const LinkControl& message, Time now) {
  if (message.type == LinkMessage::unknown) {
    // The switch has restarted, or this device was silent for too long. Any host may have sent the
    // message, so it only brings the next question forward, at most once in `least_gap`.
    next_ = std::min(next_, std::max(now, sent_ == Time::min() ? now : sent_ + least_gap));
    return;
  }
  if (message.nonce != settings_.nonce) return;
  switch (message.type) {
    case LinkMessage::challenge:
      // A switch repeats its cookie, so a device that is challenged again waits.
      if (message.cookie != cookie_) next_ = now;
      cookie_ = message.cookie;
      return;
    case LinkMessage::attached:
      return attached(message, now);
    case LinkMessage::refused:
      if (state_ == State::attached && now < lease_ends_) return;  // an answer that is late
      state_ = State::refused;
      refusal_ = message.refusal;
      return;
    default:
      return;
  }
}

void Attachment::attached(const LinkControl& message, Time now) {
  const bool ours = settings_.cna == 0 || settings_.cna == message.cna;
  if (!ours || message.cna == 0 || message.lease_ms == 0) return;
  settings_.cna = message.cna;
  state_ = State::attached;
  refusal_ = LinkRefusal::none;
  mtu_log2_ = message.mtu_log2;
  metering_ = metering_of(message);
  bytes_per_second_ = rate_of(message);
  const Duration lease = std::chrono::milliseconds(message.lease_ms);
  lease_ends_ = now + lease;
  next_ = now + std::max<Duration>(lease / asks_in_a_lease, least_gap);
}

}  // namespace urma::drivers::link
