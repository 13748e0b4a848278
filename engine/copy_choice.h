// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma::engine {

// Returns the size in bytes from which copies bypass the caches, or UINT64_MAX if that is never
// faster on this machine. The first call in a process measures it, which takes about 20 ms, so call
// it only after a segment of at least `least_past_caches` has been imported. Called by any thread.
uint64_t past_caches_from();

// Smaller copies never bypass the caches, because most caches hold them.
inline constexpr uint64_t least_past_caches = 4 << 20;

}  // namespace urma::engine
