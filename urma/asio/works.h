// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/urma.hpp"

namespace urma::asio::detail {

// The works of one Jetty: those that wait for a berth, and those that were posted. Not thread-safe:
// its owner's mutex guards it and ensures that one thread at a time calls the library's Jetty.
class Works {
 public:
  using Operation = WorkOperation;

  std::optional<Readiness> readiness;
  bool busy = false;  // a pump is running, posted, or waiting in the reactor

  // The Jetty has `berths` berths.
  void open(urma::Jetty jetty, uint32_t berths) {
    jetty_.emplace(std::move(jetty));
    berths_.resize(berths);
    for (uint32_t i = berths; i > 0; --i) vacant_.push_back(i - 1);
  }
  // Returns the Jetty, or null before `open` and after `close`.
  urma::Jetty* jetty() { return jetty_ ? &*jetty_ : nullptr; }
  const urma::Jetty* jetty() const { return jetty_ ? &*jetty_ : nullptr; }
  Result<int> descriptor() { return jetty_->fd(); }

  // Posts the work, or lets it wait for a berth.
  void add(WorkOperation& operation) {
    waiting_.push_back(&operation);
    post_waiting();
    if (operation.berth == WorkOperation::no_berth && !operation.work.buffers.empty()) {
      keep_pieces(operation);
    }
  }
  // Ends an operation that is not in any list. `status` is that of its work, and `why` that of the
  // operation.
  void refuse(WorkOperation& operation, Status status, Status why) {
    operation.result = completion_of(operation.work, status);
    let_go(operation.keep);
    ended_with(operation, why)->complete(Run::later);
  }
  // Ends an operation early if its work waits for a berth, or if it keeps its memory alive.
  void cancel(WorkOperation& operation, Status why, Effects effects) {
    if (operation.berth == WorkOperation::no_berth) {
      std::erase(waiting_, &operation);
      refuse(operation, Status::flushed, why);
    } else if (berths_[operation.berth].keep != nullptr && effects == Effects::allowed) {
      // The work goes on without its operation; the berth holds its memory until it completes.
      berths_[operation.berth].operation = nullptr;
      --posted_;
      refuse(operation, Status::unknown, why);
    }
  }

  // Returns whether any operation is in progress.
  bool wanted() const { return jetty_ && (posted_ > 0 || !waiting_.empty()); }
  bool arm() { return jetty_->arm(); }
  // Polls completions, appends the operations that they end to `ended`, and posts waiting works.
  // Returns the number of completions. Sets `over` if the queue is closed.
  size_t poll(std::vector<WorkOperation*>& ended, Status& over) {
    std::array<Completion, batch> out;
    const size_t count = jetty_->poll(out);
    for (const Completion& completion : std::span(out).first(count)) {
      settle(completion, ended, over);
    }
    if (count > 0) post_waiting();
    return count;
  }

  // Ends all operations, and takes back all memory: works that wait for a berth are flushed, and
  // the completions of the others say how they ended.
  void end_all(std::vector<WorkOperation*>& ended, Status& over) {
    for (WorkOperation* const one : std::exchange(waiting_, {})) {
      one->result = completion_of(one->work, Status::flushed);
      ended.push_back(ended_with(*one, Status::flushed));
    }
    if (vacant_.size() == berths_.size()) return;
    const size_t before = ended.size();
    [[maybe_unused]] const auto flushed = jetty_->flush();
    // After a flush all completions can be polled immediately. If another thread is closing the
    // device, they can be polled soon.
    while (vacant_.size() < berths_.size()) {
      for (const Completion& completion : jetty_->wait(std::chrono::milliseconds(10))) {
        settle(completion, ended, over);
      }
    }
    // The error code says that the operation was cancelled; the completion says what became of the
    // work.
    for (size_t i = before; i < ended.size(); ++i) {
      if (ended[i]->error) ended[i]->error = make_error_code(Status::flushed);
    }
  }
  void close() {
    readiness.reset();
    jetty_.reset();
  }

  // Returns the Keeps of works that have ended. The caller releases them without the lock, because
  // the destructors of the kept objects may call the Jetty.
  std::vector<std::shared_ptr<const void>> take_dropped() { return std::exchange(dropped_, {}); }

  // Makes a completion for a work that the library has not completed.
  static Completion completion_of(const Work& work, Status status) {
    Completion completion;
    completion.status = status;
    completion.operation = work.operation;
    completion.tag = work.tag_value;
    return completion;
  }

 private:
  static constexpr size_t batch = 64;

  // A posted work, whose tag is the index of its berth.
  struct Berth {
    WorkOperation* operation = nullptr;  // null if vacant, or if the operation ended early
    std::shared_ptr<const void> keep;
    uint64_t tag = 0;
  };

  void post_waiting() {
    while (!waiting_.empty() && !vacant_.empty()) {
      WorkOperation& operation = *waiting_.front();
      const uint32_t number = vacant_.back();
      Work work = operation.work;
      work.tag_value = number;
      work.signalled = true;
      // The post fails if the device is closed or forked, which polling will report.
      if (jetty_->post(work) == 0) return;
      berths_[number] = {&operation, std::move(operation.keep), operation.work.tag_value};
      operation.berth = number;
      vacant_.pop_back();
      waiting_.pop_front();
      ++posted_;
    }
  }

  // Copies the array of buffers. One buffer too many is enough for the post to refuse the work.
  static void keep_pieces(WorkOperation& operation) {
    const auto all = operation.work.buffers;
    const auto pieces = all.first(std::min(all.size(), max_buffers + 1));
    operation.pieces.assign(pieces.begin(), pieces.end());
    operation.work.buffers = operation.pieces;
  }

  void settle(const Completion& completion, std::vector<WorkOperation*>& ended, Status& over) {
    if (completion.status == Status::closed || completion.status == Status::forked) {
      over = completion.status;
      return stop(completion.status, ended);
    }
    const auto number = static_cast<uint32_t>(completion.tag);
    Berth berth = std::exchange(berths_[number], {});
    let_go(berth.keep);
    vacant_.push_back(number);
    WorkOperation* const operation = berth.operation;
    if (operation == nullptr) return;
    --posted_;
    operation->berth = WorkOperation::no_berth;
    operation->result = completion;
    operation->result.tag = berth.tag;
    ended.push_back(ended_with(*operation, completion.status));
  }

  // Called when no completions will follow: each work has completed, or belongs to the parent
  // process.
  void stop(Status why, std::vector<WorkOperation*>& ended) {
    vacant_.clear();
    for (uint32_t i = 0; i < berths_.size(); ++i) {
      Berth berth = std::exchange(berths_[i], {});
      let_go(berth.keep);
      vacant_.push_back(i);
      if (berth.operation != nullptr) fail(*berth.operation, why, ended);
    }
    for (WorkOperation* const one : std::exchange(waiting_, {})) fail(*one, why, ended);
    posted_ = 0;
  }
  static void fail(WorkOperation& operation, Status why, std::vector<WorkOperation*>& ended) {
    operation.result = completion_of(operation.work, why);
    ended.push_back(ended_with(operation, why));
  }

  void let_go(std::shared_ptr<const void>& keep) {
    if (keep != nullptr) dropped_.push_back(std::move(keep));
  }

  std::optional<urma::Jetty> jetty_;
  std::vector<Berth> berths_;
  std::vector<uint32_t> vacant_;  // the indices of vacant berths
  uint32_t posted_ = 0;           // berths whose operation is in progress
  std::deque<WorkOperation*>
      waiting_;  // operations that wait for a berth, in the order of their starts
  std::vector<std::shared_ptr<const void>> dropped_;
};

}  // namespace urma::asio::detail
