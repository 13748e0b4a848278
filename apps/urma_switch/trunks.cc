// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/trunks.h"

#include <algorithm>

namespace urma::apps::switches {

Trunks::Trunks(std::span<const Endpoint> others, uint64_t nonce, uint8_t mtu_log2,
               congestion::Metering metering)
    : nonce_(nonce), mtu_log2_(mtu_log2), metering_(metering) {
  for (const Endpoint& at : others) trunks_.push_back({.at = at});
}

uint32_t Trunks::find(const Endpoint& at) const {
  const auto found = std::ranges::find(trunks_, at, &Trunk::at);
  return found == trunks_.end() ? none : static_cast<uint32_t>(found - trunks_.begin());
}

bool Trunks::misreads(uint32_t trunk) const {
  return together(metering_, trunks_[trunk].metering) == congestion::Metering::other;
}

LinkControl Trunks::ask(uint32_t trunk) {
  Trunk& it = trunks_[trunk];
  const bool was_silent = it.silent();
  if (!was_silent) ++it.unanswered;
  if (it.silent() && !was_silent) ++it.silences;
  return {.type = LinkMessage::attach, .mtu_log2 = mtu_log2_, .nonce = nonce_};
}

bool Trunks::handle(uint32_t trunk, const LinkControl& message,
                    std::optional<LinkControl>& answer) {
  if (message.cna != 0) return false;
  if (message.type == LinkMessage::attach) {
    answer = LinkControl{.type = LinkMessage::attached,
                         .mtu_log2 = mtu_log2_,
                         .nonce = message.nonce,
                         .cookie = cookie_of(metering_)};
    return true;
  }
  if (message.type != LinkMessage::attached || message.nonce != nonce_) return false;
  trunks_[trunk].unanswered = 0;
  trunks_[trunk].metering = metering_of(message);
  return true;
}

}  // namespace urma::apps::switches
