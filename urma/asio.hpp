#pragma once

// Jetties for Boost.Asio (1.74 or newer): works, arrivals and events as asynchronous operations.
//
//   auto jetty = urma::asio::Jetty::make(executor, device, {.receives = 32}).value();
//   co_await jetty.async_write(bytes, inbox.segment, 4096);
//   auto [error, done] = co_await jetty.async_post(
//       urma::send(text, peer), {.timeout = 100ms}, as_tuple(deferred));
//   urma::asio::Arrival message = co_await jetty.async_receive();
//
//   auto events = urma::asio::Events::make(executor, device).value();
//   urma::Event event = co_await events.async_wait_event();
//
// Tokens: any. Without one, what is returned can be awaited in a coroutine: it is that of
// `deferred`, or, before Boost 1.81, that of `use_awaitable`, which must be awaited at once
// (with 1.74, include this header before Boost's). Handlers run on their associated executor, by
// default the Jetty's, never within the call that starts an operation, and use their associated
// allocator. Operations that have not ended keep the execution context running.
//
// Results: an error code and a Completion or Arrival. The code says how the operation ended, the
// Completion's status what became of the work; they differ only if the operation was cancelled.
// Codes are urma::Status in `category()`; compare them with Status, or with errc:
// `operation_canceled` is one that was cancelled (also by the Jetty's end), `timed_out` one whose
// time was over.
//
// Memory is lent until the operation ends. The library cannot take back a work that has left, so an
// operation that is cancelled, or out of time,
//   - ends at once if its work waited here for a berth: `flushed`, not executed;
//   - ends at once if it has PostOptions::keep, which holds its memory until the library has done
//     with it: `unknown`, it may or may not execute. Not of cancellation_type::total, which would
//     promise that nothing has happened;
//   - else ends as soon as the work does, with what became of it. JettyOptions::operation_timeout
//     and receiver_timeout bound that, and `cancel` of the Jetty hurries it.
// A negative time-out is refused: the operation ends as `bad_work`, or as `invalid_argument` if it
// waits for an arrival or an event, and nothing is posted.
// Cancellation slots need Boost 1.77; with older versions operations end by time-outs and `cancel`.
// Waiting for an arrival or an event can be cancelled at any time: buffers are the Jetty's own, and
// what comes later is the next one's.
//
// gcc 12 and older destroy the members of a braced temporary twice if its full expression contains
// co_await. What these calls take in braces is safe (asio/keep.h); aggregates of your own with a
// shared_ptr or a string in them are not: give them a name first, or a constructor.
//
// Backpressure: works without a berth wait in line, in order. Arrivals that nobody takes stay in
// the library, where they hold their senders back.
//
// Threads: any thread may start operations, and any number may run the execution context. Objects
// are made, moved and destroyed by one thread at a time, as others are. Handlers of operations that
// ended together are called in the order of their ends if their executor keeps it (one thread, a
// strand). Cancellation signals are emitted where their handlers run, as always with Asio.
//
// Lifetimes: a Jetty ends before its execution context, or with it. When it is destroyed its
// operations end as cancelled; the destructor waits until the library has given back their memory
// (some milliseconds), and their handlers are called later. The device may go before or after.

#include "urma/core/cxx20.h"

#include "urma/asio/boost.h"

#include <boost/asio/async_result.hpp>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "urma/asio/arrival.h"
#include "urma/asio/error.h"
#include "urma/asio/event_state.h"
#include "urma/asio/keep.h"
#include "urma/asio/state.h"

namespace urma::asio {

struct PostOptions {
  // Of the operation, from its start, with what it waits for a berth. Zero or more.
  Duration timeout = Duration::max();
  // A shared_ptr, of any type, to what owns the work's memory, if it is to be kept here for as long
  // as it is lent. That of a work which was given up is let go when something of the Jetty ends
  // after it, or the Jetty.
  Keep keep{};
};

// Where works are posted and messages arrive. Move only.
class Jetty {
 public:
  using executor_type = boost::asio::any_io_executor;
  using default_token = detail::DefaultToken;
  using WorkSignature = void(boost::system::error_code, Completion);
  using ArrivalSignature = void(boost::system::error_code, Arrival);

  // Uses two of the device's Limits::jetties if it receives.
  // Errors: those of Device::jetty, jfr and Jetty::fd.
  static Result<Jetty> make(executor_type executor, Device& device,
                            const JettyOptions& options = {}) {
    auto state = detail::State::make(executor, device, options);
    if (!state) return state.error();
    return Jetty(std::move(*state));
  }

  // Operations that are started on an object that was moved from end with `closed`, on the executor
  // that it had.
  Jetty(Jetty&& other) noexcept
      : executor_(other.executor_),
        nothing_(std::move(other.nothing_)),
        state_(std::move(other.state_)) {}
  Jetty& operator=(Jetty&& other) noexcept {
    const Jetty old(std::move(*this));
    executor_ = other.executor_;
    state_ = std::move(other.state_);
    return *this;
  }
  ~Jetty() {
    if (state_) state_->close();
  }

  executor_type get_executor() const { return executor_; }
  // To be published, described, and named to peers. Nothing is posted or polled there. If this
  // object was moved from, returns one that was, too.
  const urma::Jetty& jetty() const { return state_ ? state_->jetty() : nothing_; }

  // Posts a work; the operation ends when it has completed. Each is signalled. Inline data is lent
  // like other memory; the array of a work's buffers is read before this returns (by `deferred`:
  // before it is awaited, so it must live until then).
  template <class Token = default_token>
  auto async_post(const Work& work, PostOptions options, Token&& token = {}) {
    return boost::asio::async_initiate<Token, WorkSignature>(
        [state = state_, executor = executor_](auto&& handler, const Work& what, PostOptions how) {
          auto* const made = detail::begin<detail::WorkOperation, Completion>(
              state, executor, std::forward<decltype(handler)>(handler), how.timeout);
          made->work = what;
          made->keep = std::move(how.keep);
          state ? state->start(*made, how.timeout) : detail::State::end_as_closed(*made);
        },
        token, work, std::move(options));
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, PostOptions>) auto async_post(const Work& work,
                                                                       Token&& token = {}) {
    return async_post(work, PostOptions{}, std::forward<Token>(token));
  }

  template <class Token = default_token>
  auto async_write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset,
                   PostOptions options, Token&& token = {}) {
    return async_post(urma::write(from, to, offset), std::move(options),
                      std::forward<Token>(token));
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, PostOptions>) auto async_write(
      std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset,
      Token&& token = {}) {
    return async_post(urma::write(from, to, offset), std::forward<Token>(token));
  }
  template <class Token = default_token>
  auto async_read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset,
                  PostOptions options, Token&& token = {}) {
    return async_post(urma::read(to, from, offset), std::move(options), std::forward<Token>(token));
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, PostOptions>) auto async_read(std::span<std::byte> to,
                                                                       const RemoteSegment& from,
                                                                       uint64_t offset,
                                                                       Token&& token = {}) {
    return async_post(urma::read(to, from, offset), std::forward<Token>(token));
  }
  template <class Token = default_token>
  auto async_send(std::span<const std::byte> message, const RemoteJetty& to, PostOptions options,
                  Token&& token = {}) {
    return async_post(urma::send(message, to), std::move(options), std::forward<Token>(token));
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, PostOptions>) auto async_send(
      std::span<const std::byte> message, const RemoteJetty& to, Token&& token = {}) {
    return async_post(urma::send(message, to), std::forward<Token>(token));
  }

  // Takes the next message or immediate: each goes to one operation, first come, first served. One
  // whose result is thrown away (the loser of a race in Asio) is lost. Errors: receive_too_small;
  // unsupported without JettyOptions::receives.
  template <class Token = default_token>
  auto async_receive(Duration timeout, Token&& token = {}) {
    return boost::asio::async_initiate<Token, ArrivalSignature>(
        [state = state_, executor = executor_](auto&& handler, Duration limit) {
          auto* const made = detail::begin<detail::ArrivalOperation, Arrival>(
              state, executor, std::forward<decltype(handler)>(handler), limit);
          state ? state->start(*made, limit) : detail::State::end_as_closed(*made);
        },
        token, timeout);
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, Duration>) auto async_receive(Token&& token = {}) {
    return async_receive(Duration::max(), std::forward<Token>(token));
  }

  // Ends all operations, as the destructor does, and goes on: memory is the application's again
  // when this returns.
  void cancel() {
    if (state_) state_->cancel_all();
  }

 private:
  explicit Jetty(std::shared_ptr<detail::State> state)
      : executor_(state->executor()), nothing_(state->take_nothing()), state_(std::move(state)) {}

  executor_type executor_;
  urma::Jetty nothing_;  // always one that was moved from
  std::shared_ptr<detail::State> state_;
};

// What happens to a device that is no work's end (urma/core/event.h). Move only. The device must
// outlive it, where it is; one of these per device, and nobody else calls Device::events.
class Events {
 public:
  using executor_type = boost::asio::any_io_executor;
  using default_token = detail::DefaultToken;
  using Signature = void(boost::system::error_code, Event);

  // Errors: those of Device::events_fd.
  static Result<Events> make(executor_type executor, Device& device) {
    auto state = detail::EventState::make(executor, device);
    if (!state) return state.error();
    return Events(std::move(*state));
  }

  // As a Jetty's: operations on an object that was moved from end with `closed`.
  Events(Events&& other) noexcept : executor_(other.executor_), state_(std::move(other.state_)) {}
  Events& operator=(Events&& other) noexcept {
    const Events old(std::move(*this));
    executor_ = other.executor_;
    state_ = std::move(other.state_);
    return *this;
  }
  // Ends all operations as cancelled.
  ~Events() {
    if (state_) state_->close();
  }

  executor_type get_executor() const { return executor_; }

  // Takes the oldest event: each goes to one operation, first come, first served. When the device
  // is closed that is EventKind::closed, each time.
  template <class Token = default_token>
  auto async_wait_event(Duration timeout, Token&& token = {}) {
    return boost::asio::async_initiate<Token, Signature>(
        [state = state_, executor = executor_](auto&& handler, Duration limit) {
          auto* const made = detail::begin<detail::EventOperation, Event>(
              state, executor, std::forward<decltype(handler)>(handler), limit);
          state ? state->start(*made, limit) : detail::EventState::end_as_closed(*made);
        },
        token, timeout);
  }
  template <class Token = default_token>
  requires(!std::is_convertible_v<Token, Duration>) auto async_wait_event(Token&& token = {}) {
    return async_wait_event(Duration::max(), std::forward<Token>(token));
  }

 private:
  explicit Events(std::shared_ptr<detail::EventState> state)
      : executor_(state->executor()), state_(std::move(state)) {}

  executor_type executor_;
  std::shared_ptr<detail::EventState> state_;
};

}  // namespace urma::asio
