// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/json_output.h"

#include <fmt/format.h>

namespace urma::apps::perf {

using nlohmann::json;

namespace {

json round_json(const Result& result, const Round& round) {
  json out = {
      {"seconds", round.seconds},
      {"messages", round.messages},
      {"p50_us", round.p50_us},
      {"messages_per_second", round.messages_per_second},
      {"bytes_per_second", round.messages_per_second * static_cast<double>(result.what.bytes)},
      {"run_queue_wait_percent", round.waited_percent}};
  if (round.limit != 0) {
    out["limit"] = round.limit;
    out["times_limit"] = round.times_limit;
  }
  return out;
}

json rows_json(const std::vector<StageRow>& rows, uint64_t works) {
  json out = json::array();
  for (const StageRow& row : rows) {
    out.push_back({{"stage", row.stage},
                   {"times", row.times},
                   {"total_ns", row.total_ns},
                   {"ns_per_work", row.total_ns / static_cast<double>(works)},
                   {"share", row.share}});
  }
  return out;
}

json profile_json(const Result& result) {
  json out = {{"works", result.messages()}};
  for (const auto& [name, side] : {std::pair("client", &result.profiles.client),
                                   std::pair("server", &result.profiles.server)}) {
    if (!*side) continue;
    const SideProfile& profile = **side;
    const StageRows rows = rows_of(profile);
    out[name] = {{"seconds", profile.seconds},
                 {"threads", profile.threads},
                 {"cost_ns", profile.cost_ns},
                 {"calls", rows_json(rows.calls, result.messages())},
                 {"device", rows_json(rows.device, result.messages())}};
  }
  return out;
}

void add_rate(const Result& result, json& out) {
  if (result.rate <= 0) return;
  out["rate"] = result.rate;
  out["rate_percent"] = result.rate_percent();
  out["rate_reached"] = result.rate_reached();
  out["unsent"] = result.unsent();
}

void add_flows(const Result& result, json& out) {
  if (result.flows.empty()) return;
  out["traffic"] = result.traffic;
  out["processes"] = result.processes;
  out["overlap_percent"] = result.overlap_percent;
  for (const FlowResult& one : result.flows) {
    out["flows"].push_back({{"from", one.flow.from},
                            {"to", one.flow.to},
                            {"test", one.flow.test->name},
                            {"p50_us", one.p50_us},
                            {"p99_us", one.p99_us},
                            {"messages_per_second", one.messages_per_second},
                            {"bytes_per_second", one.bytes_per_second},
                            {"wrong", one.wrong}});
  }
}

void add_plan(const Result& result, json& out) {
  if (!result.what.test->plan) return;
  const PlanShape& plan = result.what.plan;
  out["blocks"] = plan.blocks;
  out["block_bytes"] = plan.block_bytes;
  out["entries"] = plan.entries;
  out["works"] = plan.works;
  out["works_at_once"] = plan.works_at_once;
  out["prep_us"] = result.prep_us();
  out["post_us"] = result.post_us();
  out["one_write_us"] = result.one_write_us();
  out["of_one_write"] = result.of_one_write();
}

void add_limit(const Result& result, json& out) {
  const auto limit = result.limit();
  if (!limit) return;
  out["limit"] = *limit;
  out["limit_unit"] = result.limit_unit();
  out["limit_pattern"] = result.limit_pattern;
  out["limit_of_clean_network"] = result.limit_of_clean_network;
  out["times_limit"] = result.times_limit();
  out["times_limit_least"] = result.least_times_limit();
  out["times_limit_most"] = result.most_times_limit();
}

}  // namespace

json to_json(const Result& result) {
  const Case& what = result.what;
  json out = {{"test", what.test->name},
              {"device", result.device},
              {"size_bytes", what.bytes},
              {"depth", what.depth},
              {"jetties", what.jetties},
              {"signal_every", what.signal_every},
              {"order", what.ordering.order->name},
              {"mode", what.ordering.mode->name},
              {"lost_percent", result.lost_percent()},
              {"atomic", what.test->atomics() ? what.atomic->name : ""},
              {"fence_every", what.ordering.fence_every},
              {"threads_mode", result.threads_mode},
              {"verified", what.verify},
              {"mapped", result.mapped},
              {"memory", what.gpu ? fmt::format("cuda:{}", *what.gpu) : "host"},
              {"spread_bytes", what.spread},
              {"past_caches", result.mapped && result.what.bytes >= result.past_caches_from},
              {"messages", result.times.count()},
              {"p50_us", result.us(0.5)},
              {"p90_us", result.us(0.9)},
              {"p99_us", result.us(0.99)},
              {"p99_9_us", result.us(0.999)},
              {"p99_99_us", result.us(0.9999)},
              {"max_us", result.max_us()},
              {"mean_us", result.mean_us()},
              {"deviation_us", result.deviation_us()},
              {"messages_per_second", result.messages_per_second()},
              {"bytes_per_second", result.bytes_per_second()},
              {"wrong", result.verdict.wrong},
              {"run_queue_wait_percent", result.waited_percent()},
              {"discarded_rounds", result.discarded()},
              {"counters", result.counters},
              {"rounds", json::array()}};
  if (what.test->lane) out["calls_per_group"] = calls_per_group(what);
  for (const PathUse& one : result.paths) {
    out["paths"].push_back({{"from", to_string(one.path.from)},
                            {"to", to_string(one.path.to)},
                            {"usable", one.path.usable},
                            {"share", one.share},
                            {"loss", one.loss},
                            {"rtt_us", static_cast<double>(one.path.rtt.count()) / 1000}});
  }
  for (const Round& round : result.rounds) out["rounds"].push_back(round_json(result, round));
  if (result.profiles.client) out["profile"] = profile_json(result);
  if (result.verdict.wrong > 0) out["first_wrong"] = result.verdict.first;
  add_rate(result, out);
  add_flows(result, out);
  add_plan(result, out);
  add_limit(result, out);
  return out;
}

}  // namespace urma::apps::perf
