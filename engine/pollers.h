#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace urma::engine {

// Whether several threads poll a device, and when a thread that polls lets others have its
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
  // Which thread was the last, and for how many more empty polls of one thread other threads are
  // taken to poll as well.
  alignas(64) std::atomic<pthread_t> latest_{};
  std::atomic<uint32_t> company_{0};
};

}  // namespace urma::engine
