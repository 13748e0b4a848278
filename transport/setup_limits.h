#pragma once

#include <cstdint>

#include "urma/core/time.h"

namespace urma::transport {

// Values that both ends of a set-up use.

// The round trip of a channel until one has been measured.
inline constexpr Duration unknown_rtt = std::chrono::milliseconds(1);

// Returns whether a set-up message may name this MTU: a power of two, from 1 KiB to a slice.
constexpr bool is_mtu(uint8_t log2) { return log2 >= 10 && log2 <= 16; }

}  // namespace urma::transport
