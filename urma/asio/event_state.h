// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/asio/service.h"
#include "urma/urma.hpp"

namespace urma::asio::detail {

// The operations that wait for a device's events. Events that no operation takes stay in the
// library, which drops and counts those for which it has no room.
//
// `mutex_` guards all members. Device::events is called under it, since one thread at a time may
// call that function. Either one `pump` runs, or one waits in the reactor.
class EventState final : public Owner {
 public:
  static Result<std::shared_ptr<EventState>> make(const Executor& executor, Device& device) {
    const Result<int> descriptor = device.events_fd();
    if (!descriptor) return descriptor.error();
    return made_by("asio events", [&]() -> Result<std::shared_ptr<EventState>> {
      auto state = std::make_shared<EventState>(executor, device, *descriptor);
      state->service_->add(*state);
      return state;
    });
  }

  EventState(const Executor& executor, Device& device, int descriptor)
      : executor_(executor), service_(&Service::of(executor)), device_(&device) {
    readiness_.emplace(executor, descriptor);
  }
  ~EventState() { close(); }

  const Executor& executor() const { return executor_; }

  // Ends an operation that was started on an Events object that was moved from.
  static void end_as_closed(EventOperation& operation) {
    operation.result.kind = EventKind::closed;
    end_later(operation, Status::closed);
  }

  void start(EventOperation& operation, Duration timeout) {
    const std::lock_guard held(mutex_);
    if (!service_) return end_later(operation, Status::closed);
    if (timeout < Duration{}) return end_later(operation, Status::invalid_argument);
    limit(executor_, operation, timeout);
    takers_.push_back(&operation);
    if (busy_) return;
    busy_ = true;
    boost::asio::post(executor_, [self = self()] { self->pump(); });
  }

  void cancel(const Ticket& ticket, Status why, Effects) override {
    const std::lock_guard held(mutex_);
    if (ticket.event == nullptr) return;
    EventOperation& operation = *ticket.event;
    std::erase(takers_, &operation);
    end_later(operation, why);
    // No operation needs the wait any longer, which would keep the context running.
    if (takers_.empty() && readiness_) readiness_->cancel();
  }

  void close() {
    for (EventOperation* const one : leave()) one->complete(Run::later);
  }
  void shutdown() override {
    for (EventOperation* const one : leave()) one->drop();
  }

 private:
  std::shared_ptr<EventState> self() {
    return std::static_pointer_cast<EventState>(shared_from_this());
  }

  static void end_later(EventOperation& operation, Status why) {
    ended_with(operation, why)->complete(Run::later);
  }

  void pump() {
    std::vector<EventOperation*> ended;
    {
      const std::lock_guard held(mutex_);
      busy_ = false;
      std::array<Event, 16> events;
      while (readiness_ && !takers_.empty()) {
        const size_t wanted = std::min(events.size(), takers_.size());
        const size_t count = device_->events(std::span(events).first(wanted));
        for (const Event& event : std::span(events).first(count)) hand(event, ended);
        if (count < wanted) await();
        if (count < wanted) break;
      }
    }
    deliver_all(ended);
  }

  void hand(const Event& event, std::vector<EventOperation*>& ended) {
    EventOperation& operation = *takers_.front();
    takers_.pop_front();
    operation.result = event;
    ended.push_back(ended_with(operation, Status::ok));
  }

  void await() {
    busy_ = true;
    readiness_->async_wait([self = self()](ErrorCode) { self->pump(); });
  }

  // Takes all operations. Afterwards the object uses neither the device nor the execution context.
  std::vector<EventOperation*> leave() {
    const std::lock_guard held(mutex_);
    if (!service_) return {};
    std::exchange(service_, nullptr)->remove(*this);
    readiness_.reset();
    std::vector<EventOperation*> ended;
    for (EventOperation* const one : std::exchange(takers_, {})) {
      ended.push_back(ended_with(*one, Status::flushed));
    }
    return ended;
  }

  const Executor executor_;
  std::mutex mutex_;
  Service* service_;  // null once closed
  Device* const device_;
  std::optional<Readiness> readiness_;
  bool busy_ = false;                   // a pump is running, posted, or waiting in the reactor
  std::deque<EventOperation*> takers_;  // operations in progress, in the order of their starts
};

}  // namespace urma::asio::detail
