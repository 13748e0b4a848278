// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "urma/asio.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#if defined(URMA_ASIO_DEFERRED)
#include <boost/asio/as_tuple.hpp>
#endif
#include <cstring>
#include <string>

#include "tests/api/helpers.h"

namespace urma::test {

namespace net = boost::asio;
using boost::system::error_code;
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
using net::awaitable;
#endif
using net::io_context;

#if defined(URMA_ASIO_DEFERRED)
constexpr auto tuple = net::as_tuple(net::deferred);
#endif

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(const asio::Arrival& arrival) {
  const auto bytes = arrival.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Allocations {
  int live = 0;
  int ever = 0;
};

// An allocator that counts its allocations.
template <class T>
struct Counting {
  using value_type = T;
  Allocations* count;
  explicit Counting(Allocations* into) : count(into) {}
  template <class U>
  Counting(const Counting<U>& other) : count(other.count) {}
  T* allocate(size_t objects) {
    ++count->live;
    ++count->ever;
    return std::allocator<T>().allocate(objects);
  }
  void deallocate(T* memory, size_t objects) {
    --count->live;
    std::allocator<T>().deallocate(memory, objects);
  }
  bool operator==(const Counting& other) const { return count == other.count; }
};

// Runs until nothing is outstanding. Returns false after a timeout.
inline bool run(io_context& context) {
  context.restart();
  context.run_for(30s);
  return context.stopped();
}
// Runs until the predicate is true. Returns false after a timeout.
template <class Predicate>
bool run_until(io_context& context, Predicate happened) {
  context.restart();
  while (!happened()) {
    if (context.run_one_for(30s) == 0) return false;
  }
  return true;
}
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
// Starts a coroutine, or a function that returns one, which is kept. A failed check in it ends the
// test.
template <class Coroutine>
void spawn(io_context& context, Coroutine what) {
  net::co_spawn(context, std::move(what), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
}
#endif

inline asio::Jetty make(io_context& context, Device& device,
                        const asio::JettyOptions& options = {}) {
  return asio::Jetty::make(context.get_executor(), device, options).value();
}
inline RemoteJetty import(Device& device, const urma::Jetty& jetty) {
  return device.import(jetty.descriptor()).value().jetty;
}
inline RemoteSegment import(Device& device, const Segment& segment) {
  return device.import(segment.descriptor()).value().segment;
}

// Two devices on one medium.
struct Pair {
  Medium medium;
  Device here;
  Device there;

  explicit Pair(std::string_view driver)
      : medium(driver),
        here(urma::open(medium.text()).value()),
        there(urma::open(medium.text()).value()) {}
};

}  // namespace urma::test
