// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/json.h"

#include <nlohmann/json.hpp>

#include "apps/urma_stat/peers.h"
#include "apps/urma_stat/users.h"

namespace urma::apps::stat {
namespace {

using nlohmann::json;

constexpr const char* schema = "urma_stat/1";

json maybe(std::optional<double> value) { return value ? json(*value) : json(nullptr); }

json device_json(const Row& row, bool rates) {
  const ObservedDevice& device = row.device;
  json metrics = json::object();
  for (size_t i = 0; i < device.metrics.size(); ++i) {
    const ObservedMetric& metric = device.metrics[i];
    json one = {{"value", metric.value == UINT64_MAX ? json(nullptr) : json(metric.value)},
                {"unit", metric.unit},
                {"window", metric.window},
                {"part", metric.part},
                {"meaning", metric.meaning}};
    if (rates) one["per_second"] = maybe(row.rates[i]);
    metrics[metric.name] = std::move(one);
  }
  return {{"pid", device.pid},
          {"uid", device.uid},
          {"user", user_name(device.uid)},
          {"process", device.process},
          {"process_started", device.process_started},
          {"opened", device.opened},
          {"device", device.device},
          {"description", device.description},
          {"endpoint", device.endpoint},
          {"eid", device.eid},
          {"reports", device.reports},
          {"age_seconds", maybe(row.age_seconds)},
          {"metrics", std::move(metrics)},
          {"channels", peers_json(row)},
          {"more_channels", device.channels ? json(device.channels->more) : json(nullptr)}};
}

}  // namespace

std::string look_json(const Look& look, std::optional<double> interval_seconds) {
  json whole = {
      {"schema", schema}, {"time", look.time}, {"skipped", look.skipped}, {"unread", look.unread}};
  if (interval_seconds) whole["interval_seconds"] = *interval_seconds;
  whole["devices"] = json::array();
  for (const Row& row : look.rows) {
    whole["devices"].push_back(device_json(row, interval_seconds.has_value()));
  }
  return whole.dump(interval_seconds ? -1 : 2) + "\n";
}

std::string metrics_json() {
  json metrics = json::array();
  for (const Metric& metric : all_metrics()) {
    metrics.push_back({{"name", metric.name},
                       {"unit", metric.unit},
                       {"window", name(metric.window)},
                       {"part", metric.part},
                       {"meaning", metric.meaning}});
  }
  return json{{"schema", schema}, {"metrics", std::move(metrics)}}.dump(2) + "\n";
}

}  // namespace urma::apps::stat
