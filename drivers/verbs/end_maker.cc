#include "drivers/verbs/end_maker.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

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
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "urma-verbs-rc");
    run();
  });
}

EndMaker::~EndMaker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (news_ >= 0) close(news_);
}

void EndMaker::add(const Order& order) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back(order);
  }
  wake_.notify_one();
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

void EndMaker::run() {
  std::vector<Order> orders;
  orders.reserve(orders_.capacity());
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !orders_.empty(); });
      if (stop_) return;
      orders.swap(orders_);
    }
    for (const Order& order : orders) {
      const Result result = carry_out(order);
      {
        const std::lock_guard lock(mutex_);
        results_.push_back(result);
        told_.store(true, std::memory_order_relaxed);
      }
      eventfd_write(news_, 1);
    }
    orders.clear();
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
