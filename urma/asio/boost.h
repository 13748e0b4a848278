#pragma once

// What differs between the versions of Boost.Asio. 1.81 has all that is used. Older ones, from 1.74
// on (Debian 12's libboost-dev), lack:
// - `deferred`: calls without a token return a boost::asio::awaitable instead (`use_awaitable`);
// - cancellation slots (before 1.77): an operation ends early by its time-out, by `cancel` of its
//   Jetty, and with its Jetty;
// - an #include of <utility> in 1.74's awaitable.hpp: include urma/asio.hpp before Boost's headers;
// - coroutines, if the compiler is clang: each call needs a completion token.

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

// A test lowers it, to see what old versions are given.
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
// This compiler and this Boost have no coroutines in common.
struct EachCallNeedsACompletionToken;
using DefaultToken = EachCallNeedsACompletionToken;
#endif

// What a cancelled operation may have done. `none` (cancellation_type::total): the caller wants it
// cancelled only if it has not taken effect and never will.
enum class Effects : uint8_t { none, allowed };

// A handler's cancellation slot, if it has one.
#if defined(URMA_ASIO_CANCELLATION)
template <class Handler>
class Slot {
 public:
  explicit Slot(const Handler& handler)
      : slot_(boost::asio::get_associated_cancellation_slot(handler)) {}

  bool is_connected() const { return slot_.is_connected(); }
  // Has `cancel(Effects)` called when the slot's signal is emitted.
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
