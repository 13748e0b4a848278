// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "transport/channel.h"
#include "transport/pools.h"

namespace urma::transport {

// The slices that wait in a channel to be pulled. It decides which one leaves next. The channel
// owns it, and gives each call the pool that all channels of the device share.
class WaitingSlices {
 public:
  using Pool = OfferQueue::Pool;

  bool empty() const {
    return std::ranges::all_of(queues_, [](const OfferQueue& queue) { return queue.empty(); });
  }
  // Returns false if the pool has no memory for the slice.
  bool push(Pool& pool, Class traffic, OfferedSlice slice) {
    return queues_[static_cast<unsigned>(traffic)].push(pool, slice);
  }
  // Returns of which class the next slice is, or nothing if none waits. Answers go first, except
  // that a few packets of requests may precede them; `requests`: how many of these are in this
  // burst so far. Urgent requests go before usual ones, of which one still goes from time to time.
  std::optional<Class> next_class(Pool& pool, uint32_t requests, uint32_t packet_bytes) const;
  // Returns the next slice of a class, of which some wait.
  const OfferedSlice& next_of(Pool& pool, Class traffic) const {
    return queues_[static_cast<unsigned>(traffic)].front(pool);
  }
  // Removes that slice.
  void take(Pool& pool, Class traffic);
  void clear(Pool& pool) {
    for (OfferQueue& queue : queues_) queue.clear(pool);
  }

 private:
  bool waits(Class traffic) const { return !queues_[static_cast<unsigned>(traffic)].empty(); }
  std::optional<Class> next_request() const;

  std::array<OfferQueue, classes> queues_;
  // The cost of the urgent slices that have left since a usual one did, or since none waited.
  uint32_t urgent_cost_ = 0;
};

}  // namespace urma::transport
