// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "urma/asio/arrivals.h"
#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/asio/service.h"
#include "urma/asio/works.h"
#include "urma/urma.hpp"

namespace urma::asio {

// Options of urma::asio::Jetty.
struct JettyOptions {
  // How many works may be outstanding in the library, at least 1. Further works wait here, in
  // order.
  uint32_t berths = 128;
  // How many messages may be expected or waiting, each in a buffer of `message_bytes` that this
  // Jetty allocates, and in addition how many immediates may be waiting. With 0, nothing can be
  // received.
  uint32_t receives = 0;
  // The longest message that can be received, in bytes, at least 1.
  uint32_t message_bytes = max_send_bytes;
  // These are as in urma::JettyOptions. Choose limits: an operation that does not keep its memory
  // alive cannot end before its work does.
  uint32_t inline_bytes = 64;
  Duration operation_timeout{};
  Duration receiver_timeout = Duration::max();
};

namespace detail {

// A Jetty with its operations: decides when its queues are polled, and by which thread. Works
// complete in the Jetty's own queue, arrivals in that of a Jfr, so that arrivals that no operation
// takes do not delay completions of works.
//
// `mutex_` guards all members. The library is called under it, since it requires that one thread at
// a time calls a Jetty. For each queue, either one `pump` runs, or one waits in the reactor.
class State final : public Owner {
 public:
  // Errors: invalid_argument (JettyOptions), those of Device::jetty, Device::jfr and Jetty::fd.
  static Result<std::shared_ptr<State>> make(const Executor& executor, Device& device,
                                             const JettyOptions& options) {
    if (options.berths == 0 || (options.receives > 0 && options.message_bytes == 0)) {
      return Error{Status::invalid_argument,
                   "asio jetty: berths is 0, or message_bytes is 0 although receives is not. Fix: "
                   "give 1 or more"};
    }
    return made_by("asio jetty", [&]() -> Result<std::shared_ptr<State>> {
      auto state = std::make_shared<State>(executor);
      if (auto made = state->open(device, options); !made) return made.error();
      state->service_->add(*state);
      return state;
    });
  }

  explicit State(const Executor& executor)
      : executor_(executor), service_(&Service::of(executor)) {}
  ~State() { close(); }

  const Executor& executor() const { return executor_; }
  // Returns the Jetty; after `close`, a Jetty that was moved from.
  const urma::Jetty& jetty() const {
    return works_.jetty() != nullptr ? *works_.jetty() : *nothing_;
  }
  // Returns a Jetty that was moved from, for the object that owns this state.
  urma::Jetty take_nothing() { return std::move(*nothing_); }

  // Ends an operation that was started on a Jetty that was moved from.
  static void end_as_closed(WorkOperation& operation) {
    operation.result = Works::completion_of(operation.work, Status::closed);
    ended_with(operation, Status::closed)->complete(Run::later);
  }
  static void end_as_closed(ArrivalOperation& operation) {
    Arrivals::refuse(operation, Status::closed);
  }

  void start(WorkOperation& operation, Duration timeout) {
    const Held held(*this);
    if (over_ != Status::ok) return works_.refuse(operation, over_, over_);
    if (timeout < Duration{}) return works_.refuse(operation, Status::bad_work, Status::bad_work);
    limit(executor_, operation, timeout);
    works_.add(operation);
    wake(works_);
  }

  void start(ArrivalOperation& operation, Duration timeout) {
    const Held held(*this);
    if (over_ != Status::ok) return Arrivals::refuse(operation, over_);
    if (arrivals_.jfr() == nullptr) return Arrivals::refuse(operation, Status::unsupported);
    if (timeout < Duration{}) return Arrivals::refuse(operation, Status::invalid_argument);
    limit(executor_, operation, timeout);
    arrivals_.add(operation);
    wake(arrivals_);
  }

  void cancel(const Ticket& ticket, Status why, Effects effects) override {
    const Held held(*this);
    if (ticket.arrival != nullptr) {
      arrivals_.cancel(*ticket.arrival, why);
      rest(arrivals_);
    } else if (ticket.work != nullptr) {
      works_.cancel(*ticket.work, why, effects);
      rest(works_);
    }
  }

  // Ends all operations. Works that waited for berths were not executed; for the others the
  // completion, which usually comes immediately, says whether they were.
  void cancel_all() { complete(stop_all()); }

  void close() { complete(leave()); }

  void shutdown() override {
    const Ended ended = leave();
    for (WorkOperation* const one : ended.works) one->drop();
    for (ArrivalOperation* const one : ended.arrivals) one->drop();
  }

  // Takes back the buffer of a message, which the application no longer uses.
  void give_back(std::span<std::byte> message) {
    const Held held(*this);
    arrivals_.give_back(message);
  }

 private:
  // Holds the lock while it exists. Its destructor first releases the lock and then the Keeps of
  // works that have ended, because the destructors of the kept objects may call the State.
  class Held {
   public:
    explicit Held(State& state) : state_(state) { state_.mutex_.lock(); }
    Held(const Held&) = delete;
    ~Held() {
      const auto dropped = state_.works_.take_dropped();
      state_.mutex_.unlock();
    }

   private:
    State& state_;
  };

  struct Ended {
    std::vector<WorkOperation*> works;
    std::vector<ArrivalOperation*> arrivals;
  };

  std::shared_ptr<State> self() { return std::static_pointer_cast<State>(shared_from_this()); }

  Result<void> open(Device& device, const JettyOptions& options) {
    if (options.receives > 0) {
      auto opened = arrivals_.open(device, options.receives, options.message_bytes);
      if (!opened) return opened.error();
      if (auto ready = watch(arrivals_); !ready) return ready.error();
    }
    auto jetty = device.jetty({.berths = options.berths,
                               .inline_bytes = options.inline_bytes,
                               .operation_timeout = options.operation_timeout,
                               .receiver_timeout = options.receiver_timeout,
                               .receives_from = arrivals_.jfr()});
    if (!jetty) return jetty.error();
    works_.open(std::move(*jetty), options.berths);
    nothing_.emplace(std::move(*jetty));
    return watch(works_);
  }

  template <class Queue>
  Result<void> watch(Queue& queue) {
    const Result<int> descriptor = queue.descriptor();
    if (!descriptor) return descriptor.error();
    queue.readiness.emplace(executor_, *descriptor);
    return {};
  }

  // ---- polling; a Queue is Works or Arrivals

  // Ensures that a queue with operations in progress is pumped when it has entries.
  template <class Queue>
  void wake(Queue& queue) {
    if (queue.busy || !queue.wanted()) return;
    queue.busy = true;
    if (queue.arm()) {
      queue.readiness->async_wait([self = self(), &queue](ErrorCode) { self->pump(queue); });
    } else {
      // The queue has entries already, or the pump that calls this function ran for long and lets
      // other handlers run.
      boost::asio::post(executor_, [self = self(), &queue] { self->pump(queue); });
    }
  }

  // Ends the wait of a queue without operations in progress, which would keep the context running.
  template <class Queue>
  void rest(Queue& queue) {
    if (queue.busy && queue.readiness && !queue.wanted()) queue.readiness->cancel();
  }

  // Polls a queue until it is empty, or until other handlers should run, and ends operations.
  template <class Queue>
  void pump(Queue& queue) {
    constexpr int most_turns = 4;
    std::vector<typename Queue::Operation*> ended;
    {
      const Held held(*this);
      queue.busy = false;
      for (int turn = 0; queue.wanted(); ++turn) {
        if (turn < most_turns && poll(queue, ended) > 0) continue;
        wake(queue);
        break;
      }
    }
    deliver_all(ended);
  }
  size_t poll(Works& works, std::vector<WorkOperation*>& ended) { return works.poll(ended, over_); }
  size_t poll(Arrivals& arrivals, std::vector<ArrivalOperation*>& ended) {
    return arrivals.poll(self(), ended, over_);
  }

  // ---- ends

  Ended stop_all() {
    const Held held(*this);
    if (works_.jetty() == nullptr) return {};
    Ended ended = end_all();
    [[maybe_unused]] const auto closed = works_.jetty()->reset();
    rest(works_);
    rest(arrivals_);
    return ended;
  }
  static void complete(const Ended& ended) {
    for (WorkOperation* const one : ended.works) one->complete(Run::later);
    for (ArrivalOperation* const one : ended.arrivals) one->complete(Run::later);
  }

  // Ends all operations and returns them. The application has all memory back afterwards.
  Ended end_all() {
    Ended ended;
    works_.end_all(ended.works, over_);
    arrivals_.end_all(ended.arrivals, Status::flushed);
    return ended;
  }

  // Ends all operations. Afterwards the object uses neither the library nor the execution context.
  Ended leave() {
    const Held held(*this);
    if (!service_) return {};
    std::exchange(service_, nullptr)->remove(*this);
    Ended ended;
    if (works_.jetty() != nullptr) ended = end_all();
    works_.close();
    arrivals_.close();
    over_ = Status::closed;
    return ended;
  }

  const Executor executor_;
  std::mutex mutex_;
  Service* service_;  // null once closed
  Works works_;
  Arrivals arrivals_;
  std::optional<urma::Jetty> nothing_;  // a Jetty that was moved from
  Status over_ =
      Status::ok;  // other than ok: the reason why no operation can be started any longer
};

}  // namespace detail

inline Arrival::~Arrival() {
  if (owner_) owner_->give_back(bytes_);
}

}  // namespace urma::asio
