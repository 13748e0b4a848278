// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma::transport {

// Limits that both ends of a set-up apply.

// Returns whether a set-up message may name this MTU: a power of two, from 1 KiB to a slice.
constexpr bool is_mtu(uint8_t log2) { return log2 >= 10 && log2 <= 16; }

}  // namespace urma::transport
