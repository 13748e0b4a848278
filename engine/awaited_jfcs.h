#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "jetty/jfc.h"

namespace urma::engine {

// The JFCs that have a descriptor or belong to a channel, so that threads that wait there learn
// that the device has closed. It owns no JFC. Called by any thread, but not on the data path.
class AwaitedJfcs {
 public:
  // Creates the JFC's descriptor. Returns false, and errno. Throws std::bad_alloc.
  bool give_descriptor(const std::shared_ptr<jetty::Jfc>& jfc);
  // Throws std::bad_alloc.
  void attach(const std::shared_ptr<jetty::Jfc>& jfc, const std::shared_ptr<jetty::Jfce>& events,
              uint64_t tag);
  // Signals all of them.
  void ring();

 private:
  void add(const std::shared_ptr<jetty::Jfc>& jfc);

  std::mutex mutex_;
  std::vector<std::weak_ptr<jetty::Jfc>> jfcs_;
};

}  // namespace urma::engine
