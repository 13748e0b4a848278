// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma::jetty {

// Counters of works, slices and answers since the device was opened. `Initiator` owns them, and it
// and its parts write them; only the thread that runs the engine reads them.
struct InitiatorCounters {
  uint64_t works = 0;
  uint64_t slices = 0;
  uint64_t copied = 0;  // slices that were copied to or from mapped memory
  uint64_t copied_bytes = 0;
  uint64_t copied_past_caches = 0;  // copied slices that bypassed the caches
  uint64_t carried = 0;             // slices that a device carried without packets
  uint64_t carried_bytes = 0;
  uint64_t not_ready = 0;     // answers "receiver not ready"
  uint64_t retries = 0;       // slices offered again
  uint64_t late_answers = 0;  // answers to slices that had ended
  uint64_t malformed = 0;     // malformed responses
  uint64_t timeouts = 0;      // works that timed out
  uint64_t unknown = 0;       // works that ended as unknown
  uint64_t held = 0;          // works that waited for earlier works
};

}  // namespace urma::jetty
