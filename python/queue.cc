// SPDX-License-Identifier: Apache-2.0
#include "python/queue.h"

#include <algorithm>
#include <utility>

namespace urma::python {

Queue::~Queue() {
  // In a child, threads of the parent may have been waiting, which the destructor would wait for.
  if (foreign()) (void)gate_.release();
}

void Queue::seize() {
  ++seizers_;
  while (polling_) sleep_beside(slice);
  --seizers_;
  polling_ = true;
}

void Queue::let_go() {
  polling_ = false;
  {
    const std::lock_guard held(gate_->mutex);
    ++gate_->turns;
  }
  gate_->changed.notify_all();
  if (std::exchange(turned_away_, false)) tell_watch("poll_soon");
}

void Queue::sleep_beside(Duration limit) {
  const uint64_t seen = gate_->turns;
  unlocked([&] {
    std::unique_lock held(gate_->mutex);
    gate_->changed.wait_for(held, limit, [&] { return gate_->turns != seen; });
  });
}

size_t Queue::pass(Duration limit) {
  std::array<Completion, 64> taken;
  size_t count = 0;
  unlocked([&] {
    if (limit <= Duration{}) {
      count = poll(taken);
    } else {
      const auto found = sleep(limit);
      count = std::min(found.size(), taken.size());
      std::copy_n(found.begin(), count, taken.begin());
    }
  });
  for (const Completion& completion : std::span(taken).first(count)) {
    if (completion.status == Status::closed || completion.status == Status::forked)
      over_ = completion.status;
    settle(completion);
  }
  return count;
}

size_t Queue::poll_once() {
  if (is_taken() || over_ != Status::ok) return 0;
  seize();
  const size_t count = pass({});
  let_go();
  if (count > 0) settled();
  return count;
}

Queue::Turn Queue::turn() {
  constexpr int most_passes = 4;
  for (int i = 0; i < most_passes; ++i) {
    refuse_if_foreign();
    if (over_ != Status::ok) return Turn::over;
    if (is_taken()) {
      turned_away_ = true;
      return Turn::busy;
    }
    if (poll_once() > 0) continue;
    // Other threads ran during the poll.
    if (over_ != Status::ok || is_taken()) continue;
    if (arm()) return Turn::armed;
  }
  return Turn::again;
}

int Queue::descriptor() {
  refuse_if_foreign();
  if (over_ != Status::ok) raise(error(over_, std::string(call_) + ": the Jetty has ended"));
  return value_of(make_descriptor());
}

void Queue::tell_watch(const char* what) const {
  if (watch_.is_none()) return;
  try {
    py::object(watch_).attr(what)();
  } catch (py::error_already_set& raised) {
    raised.discard_as_unraisable(call_);
  }
}

}  // namespace urma::python
