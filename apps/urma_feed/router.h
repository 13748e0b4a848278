// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <utility>

#include "apps/urma_feed/immediates.h"
#include "urma/urma.hpp"

namespace urma::apps::feed {

// Passes each arrival to the handler of its topic.
class Router {
 public:
  using Handler = std::function<void(const Completion& arrival, uint64_t number)>;

  // `others` handles the topics that have no handler of their own.
  explicit Router(Handler others) { handlers_.fill(std::move(others)); }

  void on(uint32_t topic, Handler handler) { handlers_[topic] = std::move(handler); }
  void route(const Completion& arrival) const {
    handlers_[topic_in(arrival.immediate)](arrival, number_in(arrival.immediate));
  }

 private:
  std::array<Handler, topics> handlers_;
};

}  // namespace urma::apps::feed
