// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/execution_context.hpp>
#include <memory>
#include <mutex>
#include <set>

#include "urma/asio/operation.h"

namespace urma::asio::detail {

// Ends the operations of all owners when their execution context ends. Owners cannot do so
// themselves, because the handlers of their operations may own them.
class Service final : public boost::asio::execution_context::service {
 public:
  using key_type = Service;
  static inline boost::asio::execution_context::id id;

  explicit Service(boost::asio::execution_context& context) : service(context) {}
  // Returns the service of the executor's context. Any thread may call it.
  static Service& of(const Executor& executor) {
    return boost::asio::use_service<Service>(
        boost::asio::query(executor, boost::asio::execution::context));
  }

  // Called by any thread.
  void add(Owner& owner) {
    const std::lock_guard held(mutex_);
    owners_.insert(&owner);
  }
  void remove(Owner& owner) {
    const std::lock_guard held(mutex_);
    owners_.erase(&owner);
  }

 private:
  void shutdown() noexcept override {
    for (;;) {
      std::shared_ptr<Owner> owner;
      {
        const std::lock_guard held(mutex_);
        if (owners_.empty()) return;
        owner = (*owners_.begin())->weak_from_this().lock();
        if (!owner) owners_.erase(owners_.begin());  // its destructor is running
      }
      if (owner) owner->shutdown();
    }
  }

  std::mutex mutex_;
  std::set<Owner*> owners_;
};

}  // namespace urma::asio::detail
