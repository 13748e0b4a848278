// SPDX-License-Identifier: Apache-2.0
#include "transport/waiting_slices.h"

namespace urma::transport {
namespace {

// Packets of requests that may leave before waiting answers: a reply of the application should
// leave together with the answer to the request that caused it, and before it.
constexpr uint32_t requests_ahead = 8;
// Urgent slices of this cost leave for each usual one, if one waits. If several wait, it is a part
// of that for each of them, so that the work of each Jetty makes progress; but at least the cost of
// a slice, so that usual slices get at most half of the channel. A small slice costs as much as in
// jetty/initiator/offers.cc.
constexpr uint32_t most_urgent_cost = 1 << 20;
constexpr uint32_t least_urgent_cost = 64 << 10;
constexpr uint32_t least_slice_cost = 2048;

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
