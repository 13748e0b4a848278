// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/peer.h"

#include <algorithm>
#include <array>

namespace urma::nixl {
namespace {

constexpr size_t works_at_once = 64;

uint64_t tag_of(const Transfer& transfer) { return reinterpret_cast<uintptr_t>(&transfer); }
Transfer& transfer_of(uint64_t tag) { return *reinterpret_cast<Transfer*>(tag); }

}  // namespace

Peer::~Peer() { close(); }

nixl_status_t Peer::post(Transfer& transfer, std::vector<std::vector<std::byte>> messages) {
  const std::scoped_lock lock(mutex_);
  if (transfer.active() && transfer.status() == NIXL_IN_PROG) return NIXL_ERR_REPOST_ACTIVE;
  transfer.begin(std::move(messages));
  waiting_.push_back(&transfer);
  post_waiting();
  // A poll may move data, which is the work of `check`; here it would keep the caller waiting.
  if (transfer.is_small()) collect();
  return transfer.status();
}

nixl_status_t Peer::check(const Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  if (transfer.status() == NIXL_IN_PROG) run();
  if (transfer.status() == NIXL_IN_PROG && device_is_gone_) return status_of(broken_);
  return transfer.status();
}

void Peer::release(std::unique_ptr<Transfer> transfer) {
  const std::scoped_lock lock(mutex_);
  std::erase(waiting_, transfer.get());
  if (transfer->status() != NIXL_IN_PROG) return;
  transfer->fail(Status::flushed);
  if (!transfer->active()) return;
  Transfer* const key = transfer.get();
  kept_.emplace(key, std::move(transfer));
}

nixl_status_t Peer::notify(std::unique_ptr<Transfer> note,
                           std::vector<std::vector<std::byte>> messages) {
  const std::scoped_lock lock(mutex_);
  note->begin(std::move(messages));
  Transfer* const key = note.get();
  kept_.emplace(key, std::move(note));
  waiting_.push_back(key);
  run();
  return broken_ == Status::ok ? NIXL_SUCCESS : status_of(broken_);
}

bool Peer::owns_works() {
  const std::scoped_lock lock(mutex_);
  return !kept_.empty();
}

void Peer::progress() {
  const std::scoped_lock lock(mutex_);
  run();
}

void Peer::close() {
  const std::scoped_lock lock(mutex_);
  broken_ = Status::flushed;  // for transfers that were made before the agent started again
  (void)jetty_.flush();
  collect();
  post_waiting();
  kept_.clear();  // of a device that was closed, no work has anything to do any longer
}

// Takes what has ended, posts what waits, and looks once more, because small works may have ended
// meanwhile.
void Peer::run() {
  collect();
  post_waiting();
  collect();
}

void Peer::collect() {
  std::array<Completion, works_at_once> ended;
  for (;;) {
    const size_t count = jetty_.poll(ended);
    for (const Completion& one : std::span(ended).first(count)) {
      if (one.status == Status::closed || one.status == Status::forked) {
        broken_ = one.status;
        device_is_gone_ = true;
        return;
      }
      end_one(transfer_of(one.tag), one.status);
    }
    if (count < ended.size()) return;
  }
}

void Peer::end_one(Transfer& transfer, Status status) {
  transfer.ended(status);
  if (status != Status::ok) std::erase(waiting_, &transfer);
  if (transfer.notification_is_next()) waiting_.push_back(&transfer);
  if (!transfer.active()) kept_.erase(&transfer);
}

void Peer::post_waiting() {
  while (!waiting_.empty()) {
    Transfer& transfer = *waiting_.front();
    if (broken_ != Status::ok) transfer.fail(broken_);
    if (transfer.postable() > 0 && !post_some(transfer)) return;
    if (transfer.postable() > 0) continue;
    waiting_.pop_front();
    if (!transfer.active()) kept_.erase(&transfer);
  }
}

// Returns whether all that it tried was posted.
bool Peer::post_some(Transfer& transfer) {
  const size_t count = std::min(transfer.postable(), works_at_once);
  works_.clear();
  for (size_t i = 0; i < count; ++i) {
    works_.push_back(transfer.work(i, mailbox_).tag(tag_of(transfer)));
  }
  const size_t posted = jetty_.post(works_);
  transfer.posted(posted);
  return posted == count;
}

}  // namespace urma::nixl
