// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "urma/core/endpoint.h"
#include "wire/link.h"

namespace urma::apps::switches {

// The other switches, to which trunks lead: which of them answer, and which port meters they have.
// A switch asks each other one whether it is there, as a device does. Does no I/O and reads no
// clock: the caller asks at regular intervals. Used by one thread.
class Trunks {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  // A switch that has not answered this many messages counts as silent. Messages are counted and
  // not time, because this switch asks nothing either while it does not run.
  static constexpr uint8_t patience = 3;

  struct Trunk {
    Endpoint at;
    uint8_t unanswered = 0;  // messages since the last answer
    // How the ports of the other switch read hints; unknown until that switch has answered.
    congestion::Metering metering = congestion::Metering::unknown;
    uint64_t silences = 0;  // how often it became silent

    bool silent() const { return unanswered > patience; }
  };

  // `nonce`: another one at each start, which only the other switches learn.
  Trunks(std::span<const Endpoint> others, uint64_t nonce, uint8_t mtu_log2,
         congestion::Metering metering);

  uint32_t count() const { return static_cast<uint32_t>(trunks_.size()); }
  // Returns the trunk to the switch at this address, or `none`.
  uint32_t find(const Endpoint& at) const;
  const Trunk& operator[](uint32_t trunk) const { return trunks_[trunk]; }
  // Returns whether the ports of that switch would take the hints for something else that those of
  // this one have written.
  bool misreads(uint32_t trunk) const;

  // Returns the message that asks the other switch whether it is there.
  LinkControl ask(uint32_t trunk);
  // Takes a message of the other switch. Returns false if switches send no such message to each
  // other; `answer` is what to answer it with, if anything.
  bool handle(uint32_t trunk, const LinkControl& message, std::optional<LinkControl>& answer);

 private:
  std::vector<Trunk> trunks_;
  const uint64_t nonce_;
  const uint8_t mtu_log2_;
  const congestion::Metering metering_;  // of this switch
};

}  // namespace urma::apps::switches
