// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "jetty/jfc.h"

namespace urma::engine {

// Wakes the threads that wait at a JFC's descriptor or at an event channel when the device has
// closed. It refers to these JFCs and owns none. Called by any thread, but not on the data path.
class AwaitedJfcs {
 public:
  // Creates the JFC's descriptor. Returns false if that failed; errno says why. Throws
  // std::bad_alloc.
  bool give_descriptor(const std::shared_ptr<jetty::Jfc>& jfc);
  // Makes threads that wait for the JFC sleep at `events`. Throws std::bad_alloc.
  void attach(const std::shared_ptr<jetty::Jfc>& jfc, const std::shared_ptr<jetty::Jfce>& events,
              uint64_t tag);
  // Signals the descriptors and event channels of all these JFCs.
  void ring();

 private:
  void add(const std::shared_ptr<jetty::Jfc>& jfc);

  std::mutex mutex_;
  std::vector<std::weak_ptr<jetty::Jfc>> jfcs_;
};

}  // namespace urma::engine
