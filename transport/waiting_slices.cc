// SPDX-License-Identifier: Apache-2.0
#include "transport/waiting_slices.h"

namespace urma::transport {
namespace {

// Packets of requests that may leave before waiting answers: a reply of the application should
// leave together with the answer to the request that caused it, and before it.
constexpr uint32_t requests_ahead = 8;
// While n usual slices wait, one of them leaves after urgent slices of an n-th of the first cost.
// So the share of each waiting Jetty does not shrink as their number grows. It leaves no earlier
// than after the second cost, that of a large slice, so usual slices get at most half of the
// channel.
constexpr uint32_t most_urgent_cost = 1 << 20;
constexpr uint32_t least_urgent_cost = 64 << 10;

}  // namespace

std::optional<Class> WaitingSlices::next_request() const {
  const uint32_t usual = queues_[static_cast<unsigned>(Class::request)].size();
  if (!waits(Class::urgent)) return usual > 0 ? std::optional(Class::request) : std::nullopt;
  if (usual == 0) return Class::urgent;
  const uint32_t before_usual = std::max(most_urgent_cost / usual, least_urgent_cost);
  return urgent_cost_ >= before_usual ? Class::request : Class::urgent;
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
