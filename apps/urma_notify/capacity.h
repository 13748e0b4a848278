// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/dialogue.h"

namespace urma::apps::notify {

// The capacity of a receiver. Half of its berths, and of the room for works that wait, is enough
// for all senders together. So stalled senders cannot keep an answer from another one. What waits
// for one sender takes at most 2 MiB, as much as the staging memory of its transfer.
inline constexpr size_t most_transfers = 64;

inline Dialogue::Options receiver_options(const Wording& wording, Jfc* completions = nullptr) {
  constexpr uint32_t berths_one = 32;
  constexpr size_t most_waiting_one = 64;
  return {.wording = wording,
          .berths = 2 * most_transfers * berths_one,
          .berths_one = berths_one,
          .receives = 256,
          .most_waiting = 2 * most_transfers * most_waiting_one,
          .most_waiting_one = most_waiting_one,
          .completions = completions};
}

}  // namespace urma::apps::notify
