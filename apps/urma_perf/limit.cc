// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/limit.h"

#include <fmt/format.h>

#include "apps/common/failure.h"
#include "apps/urma_perf/dpdk_limit.h"
#include "apps/urma_perf/shm_limit.h"
#include "apps/urma_perf/udp_limit.h"
#include "apps/urma_perf/verbs_limit.h"

namespace urma::apps::perf {

std::string_view innermost_device(std::string_view device) {
  for (size_t end = device.find_first_of("(:"); end != device.npos && device[end] == '(';) {
    const size_t rest = device.find("):", end);
    if (rest == device.npos) break;
    device.remove_prefix(rest + 2);
    end = device.find_first_of("(:");
  }
  return device.substr(0, device.find(": "));
}

LimitKind limit_kind(std::string_view device) {
  device = innermost_device(device);
  const std::string_view driver = device.substr(0, device.find(':'));
  if (driver == "cxl") return LimitKind::shared_memory;
  if (driver == "verbs") return LimitKind::rdma_adapter;
  return driver == "dpdk" ? LimitKind::polled_port : LimitKind::sockets;
}

std::unique_ptr<Limit> make_limit(const Device& device, Side& side, Place place) {
  return make_limit(limit_kind(device.description()), device, side, place);
}

std::unique_ptr<Limit> make_limit(LimitKind kind, const Device& device, Side& side, Place place) {
  if (side.what().summed && kind != LimitKind::sockets) {
    const std::string description = device.description();
    throw Failure(Exit::usage,
                  fmt::format("--summed: the limit of {} is not sockets. Fix: leave --summed out, "
                              "or choose --device udp:",
                              innermost_device(description)));
  }
  if (kind == LimitKind::shared_memory) return std::make_unique<ShmLimit>(side, place);
  if (kind == LimitKind::polled_port) {
    return std::make_unique<DpdkLimit>(side, place, device.description());
  }
  if (kind == LimitKind::rdma_adapter) {
    return std::make_unique<VerbsLimit>(side, place, device.description());
  }
  return std::make_unique<UdpLimit>(side, place, device.endpoint().address);
}

}  // namespace urma::apps::perf
