// SPDX-License-Identifier: Apache-2.0
#pragma once

// Jetties for Boost.Asio (1.74 or newer): imports, works, arrivals and events as asynchronous
// operations.
//
//   auto inbox = co_await urma::asio::async_import(executor, device, "urma://10.0.0.5/inbox");
//   auto jetty = urma::asio::Jetty::make(executor, device, {.receives = 32}).value();
//   co_await jetty.async_write(bytes, inbox.segment, 4096);
//   auto [error, done] = co_await jetty.async_post(
//       urma::send(text, peer), {.timeout = 100ms}, as_tuple(deferred));
//   urma::asio::Arrival message = co_await jetty.async_receive();
//
//   auto events = urma::asio::Events::make(executor, device).value();
//   urma::Event event = co_await events.async_wait_event();
//
// Completion tokens: every call accepts any token. Without a token, a call returns an object that
// can be awaited in a coroutine: the object that `deferred` returns, or, before Boost 1.81, the one
// that `use_awaitable` returns, which must be awaited immediately (with Boost 1.74, include this
// header before those of Boost). Handlers run on their associated executor, by default the Jetty's,
// and use their associated allocator. No handler runs within the call that starts its operation.
// Operations in progress keep the execution context running.
//
// Results: an error code, and a Completion or an Arrival. The error code says how the operation
// ended; Completion::status says what became of the work. They differ only if the operation was
// cancelled or timed out. Error codes are urma::Status in `category()`. Compare them with Status,
// or with boost::system::errc: `operation_canceled` if the operation was cancelled (also by the end
// of its Jetty), `timed_out` if it timed out.
//
// Memory is borrowed until the operation ends. The library cannot take back a work that was sent.
// So an operation that is cancelled or times out
//   - ends immediately if its work is still waiting in this Jetty for a berth: the work is
//     `flushed`, not executed;
//   - ends immediately if it has PostOptions::keep, which holds its memory until the library no
//     longer needs it: the work is `unknown`, which means that it may or may not execute. A
//     cancellation with cancellation_type::total promises that the operation had no effect, so it
//     never ends an operation in this way;
//   - otherwise ends when the work ends, with the status of the work. JettyOptions::
//     operation_timeout and receiver_timeout bound this time, and `cancel` of the Jetty shortens
//     it.
// A negative time-out is refused: the operation ends as `bad_work`, or as `invalid_argument` if it
// waits for an arrival or an event, and nothing is posted.
// Cancellation slots need Boost 1.77; with older versions only time-outs and Jetty::cancel end an
// operation early. An operation that waits for an arrival or an event can be cancelled at any time:
// the buffers are the Jetty's own, and the next operation takes what arrives later.
//
// gcc 12 and older destroy the members of a braced temporary twice if its full expression contains
// co_await. The arguments that these calls take in braces are safe (asio/keep.h). Aggregates of
// your own that contain a shared_ptr or a string are not: make them named variables, or give them a
// constructor.
//
// Backpressure: works that find no berth vacant wait in this Jetty, in order. Arrivals that no
// operation takes stay in the library and occupy receive slots, so that their senders must wait.
//
// Threads: any thread may start operations, and any number of threads may run the execution
// context. Objects are made, moved and destroyed by one thread at a time. Handlers of operations
// that ended together are called in the order in which the operations ended, if their executor
// keeps the order (one thread, or a strand). As always with Asio, emit a cancellation signal where
// the handler of its operation runs.
//
// Lifetimes: destroy a Jetty before its execution context, or together with it. When a Jetty is
// destroyed, its operations end as cancelled: the destructor waits some milliseconds, until the
// library has returned their memory, and their handlers are called later. The device may be
// destroyed before or after the Jetty.

#include "urma/core/cxx20.h"

#include "urma/asio/boost.h"

#include <boost/asio/async_result.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "urma/asio/arrival.h"
#include "urma/asio/error.h"
#include "urma/asio/event_state.h"
#include "urma/asio/import_state.h"
#include "urma/asio/keep.h"
#include "urma/asio/state.h"

namespace urma::asio {

// Options of Jetty::async_post and the functions built on it.
struct PostOptions {
  // The time within which the operation must end, zero or more. It is counted from the start of the
  // operation and includes the wait for a berth.
  Duration timeout = Duration::max();
  // A shared_ptr of any type to the owner of the work's memory. The Jetty holds it for as long as
  // the library borrows the memory, which lets the operation end before its work (see above). If
  // the operation ends early, the Jetty releases the Keep when the next of its works ends after
  // this one has, or when the Jetty is destroyed.
  Keep keep{};
};

// A urma::Jetty with asynchronous operations: posts works and receives messages. Move only.
class Jetty {
 public:
  // The types that Asio asks for: the executor, and the token of calls that name none.
  using executor_type = boost::asio::any_io_executor;
  using default_token = detail::DefaultToken;
  // The signatures of the handlers: of operations that post a work, and of `async_receive`.
  using WorkSignature = void(boost::system::error_code, Completion);
  using ArrivalSignature = void(boost::system::error_code, Arrival);

  // Makes a Jetty on `device`, whose handlers run on `executor` by default. A Jetty that receives
  // counts as two of the device's Limits::jetties.
  // Errors: those of Device::jetty, Device::jfr and Jetty::fd.
  static Result<Jetty> make(executor_type executor, Device& device,
                            const JettyOptions& options = {}) {
    auto state = detail::State::make(executor, device, options);
    if (!state) return state.error();
    return Jetty(std::move(*state));
  }

  // Operations that are started on an object that was moved from end as `closed`; their handlers
  // run on the executor that the object had.
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

  // Returns the executor with which the object was made.
  executor_type get_executor() const { return executor_; }
  // Returns the underlying Jetty, to publish it and to give its id or descriptor to peers. Do not
  // post to it and do not poll it. If this object was moved from, so is the Jetty that is returned.
  const urma::Jetty& jetty() const { return state_ ? state_->jetty() : nothing_; }

  // Posts a work; the operation ends when the work has completed. Every work is signalled. Inline
  // data is borrowed as other memory is. The array Work::buffers is read before this call returns.
  // With `deferred` it is read only when the result is awaited, so the array must live until then.
  // The error code is the status with which the work completed, or `flushed` or `timed_out` if the
  // operation was cancelled or timed out.
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

  // These functions post urma::write, urma::read and urma::send, as async_post does.
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

  // Takes the next message or immediate. Each arrival ends one operation, in the order in which the
  // operations were started. An arrival is lost if the application discards the operation's result
  // (as the operator || of Asio does with the operation that ends second). `timeout` is zero or
  // more; if it is omitted, the operation waits without limit.
  // Errors: receive_too_small; unsupported without JettyOptions::receives; closed, forked.
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

  // Ends all operations, as the destructor does; the Jetty can be used afterwards. When this call
  // returns, the library borrows no memory of these operations any longer.
  void cancel() {
    if (state_) state_->cancel_all();
  }

 private:
  explicit Jetty(std::shared_ptr<detail::State> state)
      : executor_(state->executor()), nothing_(state->take_nothing()), state_(std::move(state)) {}

  executor_type executor_;
  urma::Jetty nothing_;  // was moved from
  std::shared_ptr<detail::State> state_;
};

// The events of a device (urma/core/event.h) with asynchronous operations. Move only. The device
// must outlive this object, and must not be moved meanwhile. Make at most one Events object for a
// device, and do not call Device::events of that device yourself.
class Events {
 public:
  // The types that Asio asks for: the executor, and the token of calls that name none.
  using executor_type = boost::asio::any_io_executor;
  using default_token = detail::DefaultToken;
  // The signature of the handlers.
  using Signature = void(boost::system::error_code, Event);

  // Makes an Events object for `device`, whose handlers run on `executor` by default.
  // Errors: those of Device::events_fd.
  static Result<Events> make(executor_type executor, Device& device) {
    auto state = detail::EventState::make(executor, device);
    if (!state) return state.error();
    return Events(std::move(*state));
  }

  // Operations that are started on an object that was moved from end as `closed`.
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

  // Returns the executor with which the object was made.
  executor_type get_executor() const { return executor_; }

  // Takes the oldest event. Each event ends one operation, in the order in which the operations
  // were started. After the device was closed, each operation ends with an event of
  // EventKind::closed. `timeout` is zero or more; if it is omitted, the operation waits without
  // limit.
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

// Imports what `what` names, as Device::import, without blocking the calling thread and without a
// thread for each import: the execution context waits for the import's descriptor. If no process
// has published the name, the operation waits for up to ImportOptions::limit, however often its
// publisher ends and starts meanwhile; then it ends with the error of Device::import, usually
// `not_found` or `peer_unreachable`. It can be cancelled at any time, with any cancellation_type,
// and has no effect then.
//
// If it fails, Imported::warning is the message of the error: what failed, why and how to fix it.
// A descriptor is not checked with its owner, as with Device::import. A host name in `what`, unlike
// a numeric address and "localhost", makes this call wait for the system's resolver: resolve names
// by boost::asio::ip::udp::resolver before.
//
// The device must exist when the operation is started (with `deferred`: when it is awaited). If it
// is closed or destroyed later, the operation ends as `closed` within 100 ms. Any thread may call
// this function; any number of imports may be in progress.
// Errors: those of Device::import; unsupported (simulated devices).
template <class Token = detail::DefaultToken>
auto async_import(boost::asio::any_io_executor executor, Device& device, std::string_view what,
                  ImportOptions options, Token&& token = {}) {
  using Signature = void(boost::system::error_code, Imported);
  return boost::asio::async_initiate<Token, Signature>(
      [executor, on = &device](auto&& handler, const std::string& name, const ImportOptions& how) {
        const auto state = std::make_shared<detail::ImportState>(executor);
        auto* const made = detail::begin<detail::ImportOperation, Imported>(
            state, executor, std::forward<decltype(handler)>(handler), Duration::max());
        state->start(*made, *on, name, how);
      },
      token, std::string(what), options);
}
template <class Token = detail::DefaultToken>
requires(!std::is_convertible_v<Token, ImportOptions>) auto async_import(
    boost::asio::any_io_executor executor, Device& device, std::string_view what,
    Token&& token = {}) {
  return async_import(std::move(executor), device, what, ImportOptions{},
                      std::forward<Token>(token));
}

}  // namespace urma::asio
