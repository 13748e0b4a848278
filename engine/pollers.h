// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace urma::engine {

// Decides whether several threads poll a device, and when a thread that polls lets others have its
// processor. It does not know what is polled.
//
// Writers: the threads that poll and find nothing.
class Pollers {
 public:
  // Returns whether threads other than the caller, which has polled and found nothing, poll this
  // device. A thread that polls alone writes nothing here.
  bool several();
  // Call it after a poll that found nothing, if other threads may need the processor.
  static void give_way();

 private:
  // The thread that polled last.
  alignas(64) std::atomic<pthread_t> latest_{};
  // The number of further empty polls of that thread during which other threads count as polling,
  // too.
  std::atomic<uint32_t> company_{0};
};

}  // namespace urma::engine
