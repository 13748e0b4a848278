// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "urma/core/time.h"

namespace urma::transport {

// Decides when to report our list of addresses to a peer: repeatedly, at growing intervals, until
// the peer confirms the nonce of the latest list. It knows neither the addresses nor the routes.
class AddressReport {
 public:
  // There is a new list. `nonce`: what the peer has to confirm.
  void start(uint64_t nonce, Time now) {
    nonce_ = nonce;
    due_at_ = now;
    tries_ = 0;
  }
  // The peer has confirmed the nonce, or has received the list in another message.
  void end() { due_at_ = never; }

  bool open() const { return due_at_ != never; }
  uint64_t nonce() const { return nonce_; }
  Time due_at() const { return due_at_; }
  // The report is sent now. Returns how often it was sent before.
  unsigned next_try(Time now) {
    due_at_ = now + std::min(first_wait * (1 << std::min<int>(tries_, 5)), most_wait);
    return tries_++;
  }

 private:
  static constexpr Duration first_wait = std::chrono::milliseconds(10);
  static constexpr Duration most_wait = std::chrono::milliseconds(40);

  uint64_t nonce_ = 0;
  Time due_at_ = never;
  uint16_t tries_ = 0;
};

}  // namespace urma::transport
