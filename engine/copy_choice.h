#pragma once

#include <cstdint>

namespace urma::engine {

// From how many bytes on a copy goes past the caches: measured on this machine, once in a process,
// in some 20 ms; not sooner than somebody may need it. UINT64_MAX: never, it gains nothing here.
uint64_t past_caches_from();

// What is smaller never goes past them: most caches hold it.
inline constexpr uint64_t least_past_caches = 4 << 20;

}  // namespace urma::engine
