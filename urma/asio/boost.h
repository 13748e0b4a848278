// SPDX-License-Identifier: Apache-2.0
#pragma once

// This header hides the differences between the versions of Boost.Asio. Version 1.81 has everything
// that this library uses. Versions from 1.74 (Debian 12's libboost-dev) to 1.80 lack:
// - `deferred`: calls without a token return a boost::asio::awaitable (`use_awaitable`) instead;
// - before 1.77, cancellation slots: operations end early only by time-outs, by `cancel` of their
//   Jetty, and with their Jetty;
// - in 1.74, an #include of <utility> in awaitable.hpp: include urma/asio.hpp before Boost's
// headers;
// - with clang, coroutines: each call needs a completion token.

#if !__has_include(<boost/asio.hpp>) || !__has_include(<boost/version.hpp>)
#error "urma/asio.hpp needs Boost.Asio 1.74 or newer. Fix: apt-get install libboost-dev"
#include <install boost 1.74 or newer>  // no file has this name: compilers stop here
#endif
#include <boost/version.hpp>
#if BOOST_VERSION < 107400
#error "urma/asio.hpp needs Boost 1.74 or newer, and this one is older. Fix: install libboost-dev"
#include <install boost 1.74 or newer>  // no file has this name: compilers stop here
#endif

#include <boost/asio/async_result.hpp>
#include <cstdint>
#include <utility>

// A test defines this macro, to compile the code for older versions.
#if !defined(URMA_ASIO_BOOST_VERSION)
#define URMA_ASIO_BOOST_VERSION BOOST_VERSION
#endif
#if URMA_ASIO_BOOST_VERSION >= 107700
#define URMA_ASIO_CANCELLATION
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#endif
#if URMA_ASIO_BOOST_VERSION >= 108100
#define URMA_ASIO_DEFERRED
#include <boost/asio/deferred.hpp>
#elif defined(BOOST_ASIO_HAS_CO_AWAIT)
#include <boost/asio/use_awaitable.hpp>
#endif

namespace urma::asio::detail {

#if defined(URMA_ASIO_DEFERRED)
using DefaultToken = boost::asio::deferred_t;
#elif defined(BOOST_ASIO_HAS_CO_AWAIT)
using DefaultToken = boost::asio::use_awaitable_t<>;
#else
// This version of Boost does not support the coroutines of this compiler.
struct EachCallNeedsACompletionToken;
using DefaultToken = EachCallNeedsACompletionToken;
#endif

// Whether an operation may have had effects when it is cancelled. With `none`
// (cancellation_type::total), it is cancelled only if it has had no effect and never will have one.
enum class Effects : uint8_t { none, allowed };

// The cancellation slot of a handler, if it has one.
#if defined(URMA_ASIO_CANCELLATION)
template <class Handler>
class Slot {
 public:
  explicit Slot(const Handler& handler)
      : slot_(boost::asio::get_associated_cancellation_slot(handler)) {}

  bool is_connected() const { return slot_.is_connected(); }
  // Registers `cancel(Effects)`, which is called when the slot's signal is emitted.
  template <class Cancel>
  void assign(Cancel cancel) {
    using boost::asio::cancellation_type;
    slot_.assign([cancel = std::move(cancel)](cancellation_type how) {
      const auto with_effects = cancellation_type::terminal | cancellation_type::partial;
      const bool allowed = (how & with_effects) != cancellation_type::none;
      if (how != cancellation_type::none) cancel(allowed ? Effects::allowed : Effects::none);
    });
  }

 private:
  boost::asio::associated_cancellation_slot_t<Handler> slot_;
};
#else
template <class Handler>
class Slot {
 public:
  explicit Slot(const Handler&) {}
  bool is_connected() const { return false; }
  template <class Cancel>
  void assign(Cancel) {}
};
#endif

}  // namespace urma::asio::detail
