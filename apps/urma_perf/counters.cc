// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/counters.h"

#include <string_view>

namespace urma::apps::perf {
namespace {

constexpr std::string_view summed[] = {"retransmitted",   "receiver_not_ready",
                                       "duplicates",      "retransmission_timeouts",
                                       "faults_injected", "uncaptured"};

uint64_t find(const Counters& counters, const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

}  // namespace

Counters difference(const Statistics& end, const Statistics& begin) {
  Counters counters;
  for (const Metric& metric : all_metrics()) {
    if (metric.window == Metric::Window::now) continue;
    counters.emplace(metric.name, end.*metric.value - begin.*metric.value);
  }
  return counters;
}

Counters combine(const Counters& client, const Counters& server) {
  Counters both;
  for (const auto& [name, value] : client) both.emplace("client_" + name, value);
  for (const auto& [name, value] : server) both.emplace("server_" + name, value);
  for (const std::string_view name : summed) {
    const std::string key(name);
    both[key] = find(client, key) + find(server, key);
  }
  return both;
}

}  // namespace urma::apps::perf
