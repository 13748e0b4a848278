#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>
#include <new>
#include <string>
#include <utility>

#include "urma/asio/operation.h"
#include "urma/core/result.h"

namespace urma::asio::detail {

// What a function makes, or why there is no memory or no place in the reactor for it.
template <class Function>
auto made_by(const char* what, Function&& function) -> decltype(function()) {
  std::string why = "no memory";
  try {
    return function();
  } catch (const std::bad_alloc&) {
  } catch (const boost::system::system_error& failure) {
    why = failure.code().message();
  }
  return Error{Status::no_resources,
               std::string(what) + ": waiting for its descriptor: " + why +
                   ". Fix: ask for less; close descriptors (ulimit -n); one of these for a queue"};
}

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
