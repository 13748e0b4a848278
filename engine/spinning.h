// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <thread>

#include "urma/core/time.h"

namespace urma::engine {

// How long a thread polls before it sleeps. Going to sleep and waking takes some 25 us; an event
// may come sooner.
inline constexpr Duration spin_before_sleep = std::chrono::microseconds(50);

// The same for a port whose other ends poll. If it cannot wake a thread, a sleep of any length
// delays the next packet by 100 us and more; if it has to be armed for that, a peer makes system
// calls to wake the sleeper. So the thread polls for longer first, and gives way to others
// meanwhile.
inline constexpr Duration spin_before_nap = std::chrono::milliseconds(1);

// Returns whether `spinning` threads of a device may spin. With one spinning thread too many, a
// wait of microseconds becomes a time slice of the scheduler. The peers are on this machine, too,
// so a device uses at most half of its processors.
inline bool may_spin(uint32_t spinning) {
  static const uint32_t processors = std::thread::hardware_concurrency();
  return spinning <= processors / 2;
}

}  // namespace urma::engine
