// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma {

// The unit in which traffic is spread over the paths to a peer, if there are several (UB 6.5).
enum class Balance : uint8_t {
  // Slices of up to 64 KiB: all packets of a slice take one path, and stay in order.
  slice,
  // Packets: a single transfer uses all paths evenly, and packets overtake one another.
  packet,
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(Balance balance) { return balance <= Balance::packet; }

}  // namespace urma
