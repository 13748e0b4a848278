// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>
#include <new>
#include <string>
#include <utility>

#include "urma/asio/operation.h"
#include "urma/core/result.h"

namespace urma::asio::detail {

// Returns the result of `function`, or no_resources if memory or room in the reactor ran out.
template <class Function>
auto made_by(const char* what, Function&& function) -> decltype(function()) {
  std::string why = "no memory";
  try {
    return function();
  } catch (const std::bad_alloc&) {
  } catch (const boost::system::system_error& failure) {
    why = failure.code().message();
  }
  return Error{
      Status::no_resources,
      std::string(what) + ": waiting for its descriptor: " + why +
          ". Fix: ask for fewer berths or receives; close descriptors (ulimit -n); make one "
          "Events for a device"};
}

// Waits in an executor's reactor for a descriptor of the library: that of an armed queue, or of the
// events of a device. Not thread-safe. The library owns the descriptor, and must close it later.
class Readiness {
 public:
  Readiness(const Executor& executor, int descriptor) : descriptor_(executor, descriptor) {}
  Readiness(const Readiness&) = delete;
  ~Readiness() { descriptor_.release(); }

  // Calls the handler when the descriptor is readable; never within this call.
  template <class Handler>
  void async_wait(Handler&& handler) {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           std::forward<Handler>(handler));
  }
  // Ends the wait, so that it no longer keeps the context running.
  void cancel() {
    ErrorCode ignored;
    descriptor_.cancel(ignored);
  }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace urma::asio::detail
