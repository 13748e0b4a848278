// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "urma/asio/boost.h"
#include "urma/asio/error.h"
#include "urma/core/event.h"
#include "urma/core/time.h"
#include "urma/core/work.h"
#include "urma/urma.hpp"

namespace urma::asio::detail {

using Executor = boost::asio::any_io_executor;
using ErrorCode = boost::system::error_code;

class WorkOperation;
class ArrivalOperation;
class EventOperation;
class ImportOperation;
struct Ticket;

// An object that has operations and ends them: the State of a Jetty, an EventState or an
// ImportState.
class Owner : public std::enable_shared_from_this<Owner> {
 public:
  // Ends an operation early, with the error `why`, if the status of its work can be known then:
  // `flushed` for a work that was not sent, or `unknown` if the operation keeps its memory alive
  // and `effects` allows it. Otherwise does nothing.
  virtual void cancel(const Ticket& ticket, Status why, Effects effects) = 0;
  // Destroys all handlers without calling them, because the execution context ends: they may own
  // this object.
  virtual void shutdown() = 0;

  Owner(const Owner&) = delete;

 protected:
  Owner() = default;
  ~Owner() = default;
};

// Through a Ticket, cancellation slots and timers refer to an operation, which they may outlive:
// the pointers to the operation are null once it has ended. Guarded by the owner's mutex, except
// `owner`, which never changes.
struct Ticket {
  std::weak_ptr<Owner> owner;
  WorkOperation* work = nullptr;
  ArrivalOperation* arrival = nullptr;
  EventOperation* event = nullptr;
  ImportOperation* import = nullptr;
  std::optional<boost::asio::steady_timer> timer;
};

// Whether a handler may run before the call that completes its operation returns.
enum class Run : uint8_t { here, later };

// An operation in progress: a handler that waits for its result. `complete` and `drop` free it.
template <class Result>
class Outstanding {
 public:
  // Gives the handler `error` and `result`, on its executor.
  virtual void complete(Run run) = 0;
  // Destroys the handler without calling it, because the execution context ends.
  virtual void drop() = 0;

  Outstanding(const Outstanding&) = delete;

  std::shared_ptr<Ticket> ticket;  // null if it can neither be cancelled nor time out
  // The outcome, once it is known.
  ErrorCode error;
  Result result{};

 protected:
  Outstanding() = default;
  ~Outstanding() = default;
};

// An operation that waits for the completion of its work.
class WorkOperation : public Outstanding<Completion> {
 public:
  static constexpr uint32_t no_berth = UINT32_MAX;

  Work work;
  std::vector<Buffer> pieces;        // a copy of the work's buffers, while it waits for a berth
  std::shared_ptr<const void> keep;  // owns its memory; moves to the berth once it has one
  uint32_t berth = no_berth;

 protected:
  ~WorkOperation() = default;
};

// An operation that waits for an event of a device.
class EventOperation : public Outstanding<Event> {
 protected:
  ~EventOperation() = default;
};

// An operation that waits for the end of an import.
class ImportOperation : public Outstanding<Imported> {
 protected:
  ~ImportOperation() = default;
};

// A `Base` with the handler that the application gave.
template <class Base, class Result, class Handler>
class Pending final : public Base {
  using HandlerExecutor = boost::asio::associated_executor_t<Handler, Executor>;
  using HandlerAllocator = boost::asio::associated_allocator_t<Handler>;
  using Allocator =
      typename std::allocator_traits<HandlerAllocator>::template rebind_alloc<Pending>;
  using Traits = std::allocator_traits<Allocator>;

 public:
  static Pending* make(Handler handler, const Executor& executor) {
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    Pending* const memory = Traits::allocate(allocator, 1);
    return new (memory) Pending(std::move(handler), executor);
  }

  void complete(Run run) override {
    // Keeps both contexts running until the handler is submitted.
    const auto here = std::move(work_);
    const auto there = std::move(handler_work_);
    const HandlerAllocator allocator = boost::asio::get_associated_allocator(handler_);
    Call call{allocator, this->error, std::move(this->result), take_handler()};
    if (run == Run::here) {
      boost::asio::dispatch(there.get_executor(), std::move(call));
    } else {
      boost::asio::post(there.get_executor(), std::move(call));
    }
  }

  void drop() override { take_handler(); }

 private:
  Pending(Handler handler, const Executor& executor)
      : handler_(std::move(handler)),
        work_(executor),
        handler_work_(boost::asio::get_associated_executor(handler_, executor)) {}
  ~Pending() = default;

  // The handler with its result, as a function object that uses the handler's own allocator.
  struct Call {
    using allocator_type = HandlerAllocator;
    allocator_type get_allocator() const noexcept { return allocator; }
    void operator()() { std::move(handler)(error, std::move(result)); }

    HandlerAllocator allocator;
    ErrorCode error;
    Result result;
    Handler handler;
  };

  // Frees this object and returns the handler. The memory is free before the handler is called, so
  // that the allocator can use it for the handler's next operation.
  Handler take_handler() {
    Handler handler(std::move(handler_));
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    this->~Pending();
    Traits::deallocate(allocator, this, 1);
    return handler;
  }

  Handler handler_;
  boost::asio::executor_work_guard<Executor> work_;
  boost::asio::executor_work_guard<HandlerExecutor> handler_work_;
};

// Makes an operation of `owner`, with a ticket if it can be cancelled or time out.
template <class Base, class Outcome, class Handler>
Base* begin(const std::shared_ptr<Owner>& owner, const Executor& executor, Handler&& handler,
            Duration timeout) {
  using Kind = Pending<Base, Outcome, std::decay_t<Handler>>;
  Slot<std::decay_t<Handler>> slot(handler);
  Kind* const made = Kind::make(std::forward<Handler>(handler), executor);
  if (!slot.is_connected() && timeout == Duration::max()) return made;
  const auto ticket = std::make_shared<Ticket>();
  ticket->owner = owner;
  if constexpr (std::is_same_v<Base, WorkOperation>) ticket->work = made;
  if constexpr (std::is_same_v<Base, ArrivalOperation>) ticket->arrival = made;
  if constexpr (std::is_same_v<Base, EventOperation>) ticket->event = made;
  if constexpr (std::is_same_v<Base, ImportOperation>) ticket->import = made;
  made->ticket = ticket;
  if (!slot.is_connected()) return made;
  slot.assign([ticket](Effects effects) {
    if (const auto alive = ticket->owner.lock()) alive->cancel(*ticket, Status::flushed, effects);
  });
  return made;
}

// Cancels the operation after `timeout`.
template <class Result>
void limit(const Executor& executor, Outstanding<Result>& operation, Duration timeout) {
  if (timeout == Duration::max()) return;
  const std::shared_ptr<Ticket> ticket = operation.ticket;
  ticket->timer.emplace(executor);
  ticket->timer->expires_after(timeout);
  ticket->timer->async_wait([ticket](ErrorCode error) {
    if (error) return;
    if (const auto owner = ticket->owner.lock()) {
      owner->cancel(*ticket, Status::timed_out, Effects::allowed);
    }
  });
}

// Sets the outcome of an operation, and detaches it from slots and timers, which can no longer
// cancel it.
template <class Any>
Any* ended_with(Any& operation, Status status) {
  operation.error = status == Status::ok ? ErrorCode() : make_error_code(status);
  if (operation.ticket != nullptr) {
    operation.ticket->work = nullptr;
    operation.ticket->arrival = nullptr;
    operation.ticket->event = nullptr;
    operation.ticket->import = nullptr;
    operation.ticket->timer.reset();
  }
  return &operation;
}

// Completes operations. The handler of a single one runs here, which is fastest. Several are
// posted, so that they cannot overtake one another and other threads can run some of them.
template <class Any>
void deliver_all(const std::vector<Any*>& ended) {
  const Run run = ended.size() == 1 ? Run::here : Run::later;
  for (Any* const one : ended) one->complete(run);
}

}  // namespace urma::asio::detail
