// SPDX-License-Identifier: Apache-2.0
#include "transport/waiting_slices.h"

namespace urma::transport {
namespace {

// Packets of requests that may leave before waiting answers: a reply of the application should
// leave together with the answer to the request that caused it, and before it.
constexpr uint32_t requests_ahead = 8;
// Urgent requests of this cost may leave while others wait; then one of these does, so that each
// work ends. A small slice costs as much as in jetty/initiator/offers.cc.
constexpr uint32_t most_urgent_cost = 1 << 20;
constexpr uint32_t least_slice_cost = 2048;

}  // namespace

std::optional<Class> WaitingSlices::next_request() const {
  if (!waits(Class::urgent)) {
    return waits(Class::request) ? std::optional(Class::request) : std::nullopt;
  }
  return waits(Class::request) && urgent_cost_ >= most_urgent_cost ? Class::request : Class::urgent;
}

std::optional<Class> WaitingSlices::next_class(Pool& pool, uint32_t requests,
                                               uint32_t packet_bytes) const {
  const std::optional<Class> request = next_request();
  if (!waits(Class::answer)) return request;
  if (!request) return Class::answer;
  const uint32_t packets = packets_of(next_of(pool, *request).bytes, packet_bytes);
  return requests + packets <= requests_ahead ? *request : Class::answer;
}

void WaitingSlices::take(Pool& pool, Class traffic) {
  if (traffic == Class::urgent && waits(Class::request)) {
    urgent_cost_ += std::max(next_of(pool, traffic).bytes, least_slice_cost);
  } else if (traffic != Class::answer) {
    urgent_cost_ = 0;
  }
  queues_[static_cast<unsigned>(traffic)].pop(pool);
}

}  // namespace urma::transport
