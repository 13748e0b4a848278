// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "engine/descriptor_sleep.h"
#include "engine/keeper.h"
#include "engine/passes.h"

namespace urma::engine {

// The device's own thread. While it is the keeper, it runs passes and sleeps at the descriptors.
// While the application is the keeper, it sleeps at the keeper's timer; when the timer fires, it
// checks when the application polled last. If that is long ago, and no thread sleeps at the
// descriptors, the service thread takes over. If it finds another thread asleep at the descriptors,
// it makes the application the keeper again and returns to its timer, which the other thread sets
// when it leaves.
class ServiceThread {
 public:
  // This object owns none of these, and all of them outlive it.
  ServiceThread(Passes& passes, Waker& waker, Keeper& keeper, DescriptorSleep& descriptors)
      : passes_(passes), waker_(waker), keeper_(keeper), descriptors_(descriptors) {}

  // Errors: no_resources.
  Result<void> start();
  // Ends the thread, if it was started, and waits for its end. Must not be called in a forked
  // child.
  void stop();

 private:
  void serve();
  void watch();

  Passes& passes_;
  Waker& waker_;
  Keeper& keeper_;
  DescriptorSleep& descriptors_;
  bool running_ = false;
  pthread_t thread_{};
};

}  // namespace urma::engine
