// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/end_maker.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/above_standard.h"
#include "base/signals_blocked.h"

namespace urma::drivers::verbs {

EndMaker::EndMaker(const Adapter& adapter, ibv_cq& completions)
    : adapter_(adapter),
      completions_(completions),
      news_(above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  orders_.reserve(2 * size_t{most});
  results_.reserve(2 * size_t{most});
  const SignalsBlocked blocked;
  for (const bool destroys : {false, true}) {
    threads_[destroys] = std::thread([this, destroys] {
      pthread_setname_np(pthread_self(), destroys ? "urma-verbs-end" : "urma-verbs-rc");
      run(destroys);
    });
  }
}

EndMaker::~EndMaker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& one : threads_) one.join();
  if (news_ >= 0) close(news_);
}

void EndMaker::add(const Order& order) {
  {
    const std::lock_guard lock(mutex_);
    if (order.what == Order::What::destroy) {
      std::erase_if(orders_, [&](const Order& one) { return one.end == order.end; });
    }
    orders_.push_back(order);
  }
  wake_.notify_all();
}

// Takes the next order of a thread whose end the other thread does not work on. The mutex must be
// locked.
bool EndMaker::take(bool destroys, Order& order) {
  const auto next = std::ranges::find_if(orders_, [&](const Order& one) {
    return (one.what == Order::What::destroy) == destroys && one.end != busy_[!destroys];
  });
  if (next == orders_.end()) return false;
  order = *next;
  orders_.erase(next);
  busy_[destroys] = order.end;
  return true;
}

void EndMaker::take(std::vector<Result>& out) {
  if (!told_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  told_.store(false, std::memory_order_relaxed);
  out.insert(out.end(), results_.begin(), results_.end());
  results_.clear();
}

void EndMaker::clear_news() const {
  eventfd_t ignored = 0;
  eventfd_read(news_, &ignored);
}

void EndMaker::run(bool destroys) {
  std::unique_lock lock(mutex_);
  while (true) {
    Order order;
    wake_.wait(lock, [&] { return stop_ || take(destroys, order); });
    if (stop_) return;
    lock.unlock();
    const Result result = carry_out(order);
    lock.lock();
    busy_[destroys] = none;
    results_.push_back(result);
    told_.store(true, std::memory_order_relaxed);
    wake_.notify_all();
    eventfd_write(news_, 1);
  }
}

EndMaker::Result EndMaker::carry_out(const Order& order) {
  using What = Result::What;
  std::optional<ReliableQueue>& end = ends_[order.end];
  switch (order.what) {
    case Order::What::make:
      end = ReliableQueue::make(adapter_, completions_, order.opens);
      if (!end) return {order.end, What::failed};
      return {order.end, What::made, end->describe()};
    case Order::What::connect:
      return {order.end, end && end->connect(order.other) ? What::connected : What::failed};
    case Order::What::destroy:
      end.reset();
      break;
  }
  return {order.end, What::destroyed};
}

}  // namespace urma::drivers::verbs
