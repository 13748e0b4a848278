// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/device_text.h"

#include <fmt/format.h>

#include <cstring>

#include "apps/capi/eid.h"
#include "apps/capi/log.h"
#include "umdk/include/ub/umdk/urma/urma_types_str.h"

namespace urma::apps::admin {
namespace {

// A set of bits with the names of those that are set.
template <class Name>
std::string bits_line(std::string_view what, uint32_t value, unsigned bits, Name&& name) {
  std::string names;
  for (unsigned i = 0; i < bits; ++i) {
    if ((value >> i & 1) != 0) names += std::string(name(static_cast<uint8_t>(i))) + " ";
  }
  return fmt::format("{:<27}: 0x{:x} [{}]\n", what, value, names);
}

template <class Value>
std::string line(std::string_view what, const Value& value) {
  return fmt::format("{:<27}: {}\n", what, value);
}

std::string limits_text(const urma_device_cap_t& cap) {
  return line("max_jfc", cap.max_jfc) + line("max_jfs", cap.max_jfs) +
         line("max_jfr", cap.max_jfr) + line("max_jetty", cap.max_jetty) +
         line("max_jetty_grp", cap.max_jetty_grp) +
         line("max_jetty_in_jetty_grp", cap.max_jetty_in_jetty_grp) +
         line("max_jfc_depth", cap.max_jfc_depth) + line("max_jfs_depth", cap.max_jfs_depth) +
         line("max_jfr_depth", cap.max_jfr_depth) +
         line("max_jfs_inline_size", cap.max_jfs_inline_len) +
         line("max_jfs_sge", cap.max_jfs_sge) + line("max_jfs_rsge", cap.max_jfs_rsge) +
         line("max_jfr_sge", cap.max_jfr_sge) + line("max_msg_size", cap.max_msg_size) +
         line("max_read_size", cap.max_read_size) + line("max_write_size", cap.max_write_size) +
         line("max_cas_size", cap.max_cas_size) + line("max_swap_size", cap.max_swap_size) +
         line("max_fetch_and_add_size", cap.max_fetch_and_add_size) +
         line("max_fetch_and_sub_size", cap.max_fetch_and_sub_size) +
         line("max_fetch_and_and_size", cap.max_fetch_and_and_size) +
         line("max_fetch_and_or_size", cap.max_fetch_and_or_size) +
         line("max_fetch_and_xor_size", cap.max_fetch_and_xor_size);
}

std::string port_text(unsigned number, const urma_port_attr_t& port) {
  const auto one = [](std::string_view what, auto value, const char* name) {
    return fmt::format("  {:<21}: {} [{}]\n", what, static_cast<int>(value), name);
  };
  return fmt::format("port{}:\n", number) +
         one("max_mtu", port.max_mtu, urma_mtu_to_string(port.max_mtu)) +
         one("state", port.state, urma_port_state_to_string(port.state)) +
         one("active_width", port.active_width, urma_link_width_to_string(port.active_width)) +
         one("active_speed", port.active_speed, urma_speed_to_string(port.active_speed)) +
         one("active_mtu", port.active_mtu, urma_mtu_to_string(port.active_mtu));
}

std::string priorities_text(const urma_device_cap_t& cap) {
  std::string numbers = "priority  :";
  std::string levels = "      sl  :";
  std::string types = " tp_type  :";
  for (unsigned i = 0; i < URMA_MAX_PRIORITY_CNT; ++i) {
    numbers += fmt::format("{:5}", i);
    levels += fmt::format("{:5}", cap.priority_info[i].SL);
    types += fmt::format("  {}", urma_tp_type_en_to_string(cap.priority_info[i].tp_type));
  }
  return numbers + "\n" + levels + "\n" + types + "\n";
}

}  // namespace

urma_device_attr_t attributes_of(const capi::ListedDevice& device) {
  urma_device_attr_t out{};
  if (urma_query_device(device.device, &out) != URMA_SUCCESS) {
    throw capi::failed("asking what " + device.name + " can do");
  }
  return out;
}

std::string device_table(const std::vector<capi::ListedDevice>& devices) {
  std::string out =
      "num  ubep_dev            tp_type     eid                                             link\n"
      "---  ----------------    --------    --------------------------------------------    "
      "--------\n";
  int number = 0;
  for (const capi::ListedDevice& device : devices) {
    const char* const type = urma_tp_type_to_string(device.device->type);
    for (const urma_eid_info_t& eid : device.eids) {
      const auto state = attributes_of(device).port_attr[0].state;
      out +=
          fmt::format("{:<3}  {:<16}    {:<8}    eid{} {}    {:<8}\n", number++, device.name, type,
                      eid.eid_index, capi::to_text(eid.eid), urma_port_state_to_string(state));
    }
    if (device.eids.empty()) {  // it cannot be opened
      out += fmt::format("{:<3}  {:<16}    {:<56}    {:<8}\n", number++, device.name, type,
                         urma_port_state_to_string(URMA_PORT_DOWN));
    }
  }
  return out;
}

std::string whole_text(const capi::ListedDevice& device) {
  const urma_device_attr_t attributes = attributes_of(device);
  const urma_device_cap_t& cap = attributes.dev_cap;
  urma_eid_t guid{};
  std::memcpy(guid.raw, &attributes.guid, sizeof guid.raw);
  std::string out =
      std::string(100, '<') + "\n" + fmt::format("{:<27}: {:<16}\n", "name", device.name);
  out += fmt::format("{:<27}: {} [{}]\n", "transport_type", static_cast<int>(device.device->type),
                     urma_tp_type_to_string(device.device->type));
  out += fmt::format("{:<27}:\n", "eids");
  for (const urma_eid_info_t& eid : device.eids) {
    out +=
        fmt::format("  {:<25}: {}\n", fmt::format("eid{}", eid.eid_index), capi::to_text(eid.eid));
  }
  out += line("guid", capi::to_text(guid));
  out += bits_line("feature", cap.feature.value, URMA_DEVICE_FEAT_NUM, urma_device_feat_to_string);
  out += limits_text(cap);
  out += bits_line("atomic_feature", cap.atomic_feat.value, URMA_ATOMIC_FEAT_NUM,
                   urma_atomic_feat_to_string);
  out += bits_line("trans_mode", cap.trans_mode, 3, [](uint8_t bit) {
    return urma_trans_mode_to_string(static_cast<urma_transport_mode_t>(1 << bit));
  });
  out += bits_line("congestion_ctrl_alg", cap.congestion_ctrl_alg, 16,
                   urma_congestion_ctrl_alg_to_string);
  out += line("ceq_cnt", cap.ceq_cnt) + line("max_tp_in_tpg", cap.max_tp_in_tpg) +
         line("port_count", static_cast<unsigned>(attributes.port_cnt)) +
         line("reserved_jetty_id_min", attributes.reserved_jetty_id_min) +
         line("reserved_jetty_id_max", attributes.reserved_jetty_id_max);
  for (unsigned i = 0; i < attributes.port_cnt; ++i) out += port_text(i, attributes.port_attr[i]);
  return out + priorities_text(cap) + std::string(100, '>') + "\n";
}

}  // namespace urma::apps::admin
