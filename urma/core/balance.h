#pragma once

#include <cstdint>

namespace urma {

// What is spread over the paths to a peer, where there are several (UB 6.5).
enum class Balance : uint8_t {
  // Slices of 64 KiB, and smaller works: a slice's packets stay together, and in order.
  slice,
  // Each packet: the paths are used evenly by a single transfer, and packets overtake each other.
  packet,
};
// Whether it is one of the values above: any number can be cast to an enumeration.
constexpr bool is_valid(Balance balance) { return balance <= Balance::packet; }

}  // namespace urma
