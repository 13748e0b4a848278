#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "urma/asio/error.h"
#include "urma/core/work.h"

namespace urma::asio::detail {

using Executor = boost::asio::any_io_executor;
using ErrorCode = boost::system::error_code;

class State;
class WorkOperation;
class ArrivalOperation;

// By which who cancels finds an operation, or that it has ended: cancellation slots and timers may
// live longer. Guarded by the State's mutex, but for `state`, which never changes.
struct Ticket {
  std::weak_ptr<State> state;
  WorkOperation* work = nullptr;
  ArrivalOperation* arrival = nullptr;
  std::optional<boost::asio::steady_timer> timer;
};

// Whether a handler may run before the call that completes it returns.
enum class Run : uint8_t { here, later };

// A handler that waits for its result. It ends by `complete` or `drop`, which free it.
template <class Result>
class Outstanding {
 public:
  // Gives the handler `error` and `result`, on its executor.
  virtual void complete(Run run) = 0;
  // The handler goes without having been called: its execution context ends.
  virtual void drop() = 0;

  Outstanding(const Outstanding&) = delete;

  std::shared_ptr<Ticket> ticket;  // null if nobody can cancel it
  // What it ends with, once that is known.
  ErrorCode error;
  Result result{};

 protected:
  Outstanding() = default;
  ~Outstanding() = default;
};

class WorkOperation : public Outstanding<Completion> {
 public:
  static constexpr uint32_t no_berth = UINT32_MAX;

  Work work;
  std::vector<Buffer> pieces;        // copies of the work's, while it waits for a berth
  std::shared_ptr<const void> keep;  // what holds its memory; in the berth, once there is one
  uint32_t berth = no_berth;

 protected:
  ~WorkOperation() = default;
};

// `Base` with the handler that somebody gave.
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
    // Until the handler is on its way, both contexts have something to do.
    const auto here = std::move(work_);
    const auto there = std::move(handler_work_);
    const HandlerAllocator allocator = boost::asio::get_associated_allocator(handler_);
    auto call = boost::asio::bind_allocator(
        allocator,
        [ended = this->error, out = std::move(this->result), handler = take_handler()]() mutable {
          std::move(handler)(ended, std::move(out));
        });
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

  // Its memory is free before the handler is called, so that it may be used for the next one.
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

}  // namespace urma::asio::detail
