// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/counters.h"
#include "wire/setup_message.h"

namespace urma::transport {

// A set-up message that has just arrived, and where it came from. Exists while the message is
// handled.
struct ArrivedSetup {
  const Addresses& addresses;
  const SetupMessage& message;
  const Endpoint& from;
  uint8_t path = 0;  // our path on which it came
  Time now;
};

// Counts a set-up message that has no effect and is not answered (counters.h).
inline void ignore(uint64_t& reason) { ++reason; }

// Returns whether the message names this incarnation of the device. If not, counts it.
inline bool names_us(const ArrivedSetup& arrived, Incarnation life, Counters& counters) {
  if (arrived.message.to_life == number(life)) return true;
  ++counters.setup_incarnation;
  return false;
}

}  // namespace urma::transport
