// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "urma/asio/arrival.h"
#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/urma.hpp"

namespace urma::asio::detail {

// An operation that waits for an arrival.
class ArrivalOperation : public Outstanding<Arrival> {
 protected:
  ~ArrivalOperation() = default;
};

// The Jfr of one Jetty with the buffers of its messages, and the operations that wait for arrivals.
// Arrivals are polled only while an operation waits for one. The others stay in the library and
// occupy receive slots, so that their senders must wait. Not thread-safe: its owner's mutex guards
// it.
class Arrivals {
 public:
  using Operation = ArrivalOperation;

  std::optional<Readiness> readiness;
  bool busy = false;  // a pump is running, posted, or waiting in the reactor

  // Makes the Jfr, and posts `receives` buffers of `message_bytes`. Errors: those of Device::jfr.
  Result<void> open(Device& device, uint32_t receives, uint32_t message_bytes) {
    auto jfr = device.jfr({.receives = receives});
    if (!jfr) return jfr.error();
    jfr_.emplace(std::move(*jfr));
    message_bytes_ = message_bytes;
    memory_ = std::unique_ptr<std::byte[]>(new std::byte[size_t{receives} * message_bytes]);
    for (uint32_t i = 0; i < receives; ++i) post_receive(i);
    return {};
  }
  // Returns the Jfr, or null if the Jetty does not receive, and after `close`.
  const Jfr* jfr() const { return jfr_ ? &*jfr_ : nullptr; }
  Result<int> descriptor() { return jfr_->fd(); }

  void add(ArrivalOperation& operation) { takers_.push_back(&operation); }
  void cancel(ArrivalOperation& operation, Status why) {
    std::erase(takers_, &operation);
    refuse(operation, why);
  }
  // Ends an operation that was never added to the waiting ones.
  static void refuse(ArrivalOperation& operation, Status why) {
    set_status(operation, why);
    ended_with(operation, why)->complete(Run::later);
  }

  // Returns whether any operation is in progress.
  bool wanted() const { return jfr_ && !takers_.empty(); }
  bool arm() { return jfr_->arm(); }
  // Takes arrivals, at most as many as operations want, and appends the operations that they end.
  // Returns the number of arrivals. Sets `over` if the queue is closed. `owner` gets the buffers
  // back.
  size_t poll(const std::shared_ptr<State>& owner, std::vector<ArrivalOperation*>& ended,
              Status& over) {
    std::array<Completion, batch> out;
    const size_t count = jfr_->poll(std::span(out).first(std::min(batch, takers_.size())));
    for (const Completion& completion : std::span(out).first(count)) {
      if (completion.status == Status::closed || completion.status == Status::forked) {
        over = completion.status;
        end_all(ended, over);
      } else {
        hand(completion, owner, ended);
      }
    }
    return count;
  }
  // Posts a buffer again that the application no longer uses.
  void give_back(std::span<std::byte> message) {
    const auto at = static_cast<size_t>(message.data() - memory_.get());
    if (jfr_) post_receive(static_cast<uint32_t>(at / message_bytes_));
  }

  void end_all(std::vector<ArrivalOperation*>& ended, Status why) {
    for (ArrivalOperation* const one : std::exchange(takers_, {})) {
      set_status(*one, why);
      ended.push_back(ended_with(*one, why));
    }
  }
  void close() {
    readiness.reset();
    jfr_.reset();
  }

 private:
  static constexpr size_t batch = 64;

  static void set_status(ArrivalOperation& operation, Status status) {
    operation.result.completion_.status = status;
    operation.result.completion_.operation = urma::Operation::receive;
  }

  void post_receive(uint32_t slot) {
    // Tags are larger than 0, because an immediate without a message completes with tag 0. There is
    // a receive slot for each buffer, so `receive` fails only after the device has closed, which
    // polling reports.
    (void)jfr_->receive({memory_.get() + size_t{slot} * message_bytes_, message_bytes_},
                        uint64_t{slot} + 1);
  }

  void hand(const Completion& completion, const std::shared_ptr<State>& owner,
            std::vector<ArrivalOperation*>& ended) {
    ArrivalOperation& operation = *takers_.front();
    takers_.pop_front();
    Arrival& arrival = operation.result;
    arrival.completion_ = completion;
    if (completion.tag != 0) {
      const size_t bytes = completion.ok() ? completion.bytes : 0;
      arrival.bytes_ = {memory_.get() + (completion.tag - 1) * message_bytes_, bytes};
      arrival.owner_ = owner;
      arrival.completion_.tag = 0;
    }
    ended.push_back(ended_with(operation, completion.status));
  }

  std::optional<Jfr> jfr_;
  uint32_t message_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;   // of messages
  std::deque<ArrivalOperation*> takers_;  // operations in progress, in the order of their starts
};

}  // namespace urma::asio::detail
