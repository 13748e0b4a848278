#include "apps/urma_perf/counters.h"

#include <string_view>

namespace urma::perf {
namespace {

struct Row {
  std::string_view name;
  uint64_t Statistics::*total;
};

constexpr Row rows[] = {
    {"works", &Statistics::works},
    {"completions", &Statistics::completions},
    {"receiver_not_ready", &Statistics::receiver_not_ready},
    {"retries", &Statistics::retries},
    {"timeouts", &Statistics::timeouts},
    {"unknown", &Statistics::unknown},
    {"executed", &Statistics::executed},
    {"refused", &Statistics::refused},
    {"not_ready", &Statistics::not_ready},
    {"repeated", &Statistics::repeated},
    {"withdrawn", &Statistics::withdrawn},
    {"packets_sent", &Statistics::packets_sent},
    {"retransmitted", &Statistics::retransmitted},
    {"filler", &Statistics::filler},
    {"acks_sent", &Statistics::acks_sent},
    {"packets_received", &Statistics::packets_received},
    {"duplicates", &Statistics::duplicates},
    {"out_of_order", &Statistics::out_of_order},
    {"retransmission_timeouts", &Statistics::retransmission_timeouts},
    {"dropped_icrc", &Statistics::dropped_icrc},
    {"dropped_malformed", &Statistics::dropped_malformed},
    {"dropped_unknown_channel", &Statistics::dropped_unknown_channel},
    {"dropped_other", &Statistics::dropped_other},
    {"frames_sent", &Statistics::frames_sent},
    {"frames_received", &Statistics::frames_received},
    {"send_calls", &Statistics::send_calls},
    {"receive_calls", &Statistics::receive_calls},
    {"send_failures", &Statistics::send_failures},
    {"unreachable", &Statistics::unreachable},
    {"faults_injected", &Statistics::faults_injected},
    {"passes", &Statistics::passes},
};

constexpr std::string_view summed[] = {"retransmitted", "receiver_not_ready", "duplicates",
                                       "retransmission_timeouts", "faults_injected"};

uint64_t find(const Counters& counters, const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

}  // namespace

Counters difference(const Statistics& end, const Statistics& begin) {
  Counters counters;
  for (const Row& row : rows) {
    counters.emplace(row.name, end.*row.total - begin.*row.total);
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

}  // namespace urma::perf
