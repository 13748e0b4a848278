// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/json.h"

#include <nlohmann/json.hpp>

#include "apps/capi/eid.h"
#include "apps/urma_admin/device_text.h"
#include "umdk/include/ub/umdk/urma/urma_types_str.h"

namespace urma::apps::admin {
namespace {

using nlohmann::json;

constexpr const char* schema = "urma_admin/1";

template <class Value>
json maybe(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

json maybe(const std::optional<Duration>& time) {
  return time ? json(static_cast<double>(time->count()) * 1e-9) : json(nullptr);
}

json to_json(const ObservedJetty& one) {
  return {{"kind", one.kind},
          {"id", one.id},
          {"state", one.state},
          {"sends", one.sends},
          {"receives", one.receives},
          {"jfc", one.jfc},
          {"receives_jfc", maybe(one.receives_jfc)},
          {"jfr", maybe(one.jfr)},
          {"weight", one.weight},
          {"urgent", one.urgent},
          {"unreliable", one.unreliable},
          {"outstanding", one.outstanding}};
}

json objects_json(const ObservedObjects& objects) {
  json out = {{"jetties", json::array()},       {"jfcs", json::array()},
              {"segments", json::array()},      {"more_jetties", objects.more_jetties},
              {"more_jfcs", objects.more_jfcs}, {"more_segments", objects.more_segments}};
  for (const ObservedJetty& one : objects.jetties) out["jetties"].push_back(to_json(one));
  for (const ObservedJfc& one : objects.jfcs) {
    out["jfcs"].push_back({{"id", one.number}, {"depth", one.depth}});
  }
  for (const ObservedSegment& one : objects.segments) {
    out["segments"].push_back({{"token_id", token_id_of(one)},
                               {"address", one.address},
                               {"bytes", one.bytes},
                               {"read", has(one.rights, Rights::read)},
                               {"write", has(one.rights, Rights::write)},
                               {"atomic", has(one.rights, Rights::atomic)}});
  }
  return out;
}

json channels_json(const ObservedChannels& channels) {
  json out = json::array();
  for (const ObservedChannel& one : channels.shown) {
    out.push_back({{"peer", one.peer},
                   {"from", one.from},
                   {"path", one.path},
                   {"state", one.state},
                   {"congestion", one.congestion},
                   {"rtt_seconds", maybe(one.rtt)},
                   {"age_seconds", maybe(one.age)},
                   {"sent", maybe(one.sent)},
                   {"retransmitted", maybe(one.retransmitted)}});
  }
  return out;
}

json process_json(const Opened& one) {
  json metrics = json::object();
  for (const ObservedMetric& metric : one.page.metrics) {
    metrics[metric.name] = metric.value == UINT64_MAX ? json(nullptr) : json(metric.value);
  }
  const auto& page = one.page;
  return {{"pid", page.pid},
          {"uid", page.uid},
          {"process", page.process},
          {"device", page.device},
          {"eid", capi::to_text(one.at.eid)},
          {"uasid", one.at.uasid},
          {"objects", page.objects ? objects_json(*page.objects) : json(nullptr)},
          {"channels", page.channels ? channels_json(*page.channels) : json(nullptr)},
          {"more_channels", page.channels ? json(page.channels->more) : json(nullptr)},
          {"metrics", std::move(metrics)}};
}

json capabilities_json(const capi::ListedDevice& device) {
  const urma_device_attr_t attributes = attributes_of(device);
  const urma_device_cap_t& cap = attributes.dev_cap;
  json priorities = json::array();
  for (const auto& one : cap.priority_info) {
    priorities.push_back({{"sl", one.SL}, {"tp_type", urma_tp_type_en_to_string(one.tp_type)}});
  }
  return {{"feature", cap.feature.value},
          {"max_jfc", cap.max_jfc},
          {"max_jfs", cap.max_jfs},
          {"max_jfr", cap.max_jfr},
          {"max_jetty", cap.max_jetty},
          {"max_jetty_grp", cap.max_jetty_grp},
          {"max_jfc_depth", cap.max_jfc_depth},
          {"max_jfs_depth", cap.max_jfs_depth},
          {"max_jfr_depth", cap.max_jfr_depth},
          {"max_jfs_inline_size", cap.max_jfs_inline_len},
          {"max_jfs_sge", cap.max_jfs_sge},
          {"max_jfr_sge", cap.max_jfr_sge},
          {"max_msg_size", cap.max_msg_size},
          {"max_read_size", cap.max_read_size},
          {"max_write_size", cap.max_write_size},
          {"max_cas_size", cap.max_cas_size},
          {"atomic_feature", cap.atomic_feat.value},
          {"trans_mode", cap.trans_mode},
          {"congestion_ctrl_alg", cap.congestion_ctrl_alg},
          {"reserved_jetty_id_min", attributes.reserved_jetty_id_min},
          {"reserved_jetty_id_max", attributes.reserved_jetty_id_max},
          {"priorities", std::move(priorities)}};
}

}  // namespace

json to_json(const std::vector<capi::ListedDevice>& devices, const Pages& pages) {
  json whole = {{"schema", schema},
                {"devices", json::array()},
                {"skipped", pages.skipped},
                {"unread", pages.unread}};
  for (const capi::ListedDevice& device : devices) {
    json one = {{"name", device.name},
                {"transport_type", urma_tp_type_to_string(device.device->type)},
                {"eids", json::array()},
                {"error", device.error.empty() ? json(nullptr) : json(device.error)},
                {"capabilities", capabilities_json(device)},
                {"processes", json::array()}};
    for (const urma_eid_info_t& eid : device.eids) {
      one["eids"].push_back({{"index", eid.eid_index}, {"eid", capi::to_text(eid.eid)}});
    }
    for (const Opened* const process : opened_at(device, pages)) {
      one["processes"].push_back(process_json(*process));
    }
    whole["devices"].push_back(std::move(one));
  }
  return whole;
}

}  // namespace urma::apps::admin
