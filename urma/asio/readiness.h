#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "urma/asio/operation.h"

namespace urma::asio::detail {

// A descriptor of the library's in an executor's reactor: readable when a queue that was armed has
// something. Not thread-safe. The descriptor stays the library's, which must close it later.
class Readiness {
 public:
  Readiness(const Executor& executor, int descriptor) : descriptor_(executor, descriptor) {}
  Readiness(const Readiness&) = delete;
  ~Readiness() { descriptor_.release(); }

  // Never calls the handler before it returns.
  template <class Handler>
  void async_wait(Handler&& handler) {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           std::forward<Handler>(handler));
  }
  // Waits end now, so that they keep no context running.
  void cancel() {
    ErrorCode ignored;
    descriptor_.cancel(ignored);
  }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace urma::asio::detail
