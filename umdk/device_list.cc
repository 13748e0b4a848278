// SPDX-License-Identifier: Apache-2.0
#include "umdk/device_list.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <span>

#include "base/interfaces.h"
#include "umdk/handle.h"
#include "umdk/log.h"
#include "umdk/place.h"

namespace urma::umdk {
namespace {

urma_provider_ops_t provider = {.name = "liburma",
                                .attr = {.version = 1, .transport_type = URMA_TRANSPORT_UB},
                                .match_table = nullptr,
                                .init = urma_init,
                                .uninit = urma_uninit,
                                .query_device = urma_query_device,
                                .create_context = nullptr,
                                .delete_context = urma_delete_context,
                                .get_uasid = urma_get_uasid};

// Returns the address of an interface as a device string, which leaves the choice of the port to
// the system, because all processes of a host share its EIDs. Empty if it is not an address that
// peers can use.
std::string device_string(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.sa_family == AF_INET) {
    const auto& in4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in4.sin_addr, text, sizeof text);
    return "udp:" + std::string(text) + ":0";
  }
  if (address.sa_family != AF_INET6) return {};
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr)) return {};
  inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
  return "udp:[" + std::string(text) + "]:0";
}

// Returns the EID in a device string, udp:ADDRESS:PORT, or nothing if there is none.
std::optional<urma_eid_t> eid_in(std::string_view text) {
  constexpr std::string_view network = "udp:";
  if (!text.starts_with(network)) return std::nullopt;
  const auto at = parse_endpoint(text.substr(network.size(), text.find('?') - network.size()));
  if (!at) return std::nullopt;
  return place_of(*at).eid;
}

// In the order of the values of urma_mtu_t, in bytes, and of urma_speed_t, in Mb/s.
constexpr std::array<uint64_t, 6> mtus = {256, 512, 1024, 2048, 4096, 8192};
constexpr std::array<uint64_t, 14> speeds = {10,    100,   1000,  2500,   5000,   10000,  14000,
                                             25000, 40000, 50000, 100000, 200000, 400000, 800000};

// Returns the place of the largest value that is at most this one, or 0.
size_t most_of(uint64_t value, std::span<const uint64_t> values) {
  const auto behind = std::ranges::upper_bound(values, value);
  return behind == values.begin() ? 0 : static_cast<size_t>(behind - values.begin()) - 1;
}

// Returns the number that a file of the kernel consists of, or 0 if there is none, or it is -1.
uint64_t number_in(const std::string& path) {
  long long number = 0;
  std::ifstream(path) >> number;
  return number > 0 ? static_cast<uint64_t>(number) : 0;
}

// Returns the name of the interface that has this address, or an empty one.
std::string interface_with(const std::optional<urma_eid_t>& eid) {
  if (!eid) return {};
  const Eid wanted = to_address(*eid);
  std::string found;
  find_interface_address([&](const InterfaceAddress& one) {
    // The loopback interface has all of 127/8, but lists only 127.0.0.1.
    const bool local = Endpoint{wanted, 0}.is_ipv4() && wanted.bytes[12] == std::byte{127};
    const bool is_it = one.address == wanted || (local && (one.flags & IFF_LOOPBACK) != 0);
    if (is_it) found = one.label.substr(0, one.label.find(':'));
    return is_it;
  });
  return found;
}

// The EID is the one at which the device opens, so that it is opened for a moment. If another
// device has its port, nothing but the text is left.
Result<urma_eid_t> eid_of(const std::string& text) {
  const auto opened = urma::open(text, {.observable = false});
  if (opened) return place_of(opened->endpoint()).eid;
  const auto eid = eid_in(text);
  if (opened.status() == Status::address_in_use && eid) return *eid;
  return opened.error();
}

}  // namespace

Device::Device(std::string_view name_, std::vector<std::string> strings_)
    : urma_device_t{}, strings(std::move(strings_)), eids(strings.size()) {
  std::memcpy(name, name_.data(), std::min(name_.size(), sizeof name - 1));
  std::memcpy(path, strings[0].data(), std::min(strings[0].size(), sizeof path - 1));
  type = URMA_TRANSPORT_UB;
  ops = &provider;
  handle = mark_of(this);
}

DeviceList& DeviceList::get() {
  static auto* const only = new DeviceList;
  return *only;
}

void DeviceList::add(std::string_view name, std::vector<std::string> strings) {
  if (Device* const there = known(name)) {
    if (there->strings == strings) return;
    there->strings = std::move(strings);
    there->eids.assign(there->strings.size(), std::nullopt);
    return;
  }
  devices_.push_back(std::make_unique<Device>(name, std::move(strings)));
}

void DeviceList::add_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> addresses(first, freeifaddrs);
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> interfaces;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = device_string(*one->ifa_addr);
    if (text.empty()) continue;
    if (!interfaces.contains(one->ifa_name)) order.emplace_back(one->ifa_name);
    interfaces[one->ifa_name].push_back(text);
  }
  for (const std::string& name : order) add("udp_" + name, interfaces[name]);
}

void DeviceList::refresh() {
  const std::lock_guard held(mutex_);
  const char* const named = std::getenv("URMA_DEVICES");
  if (named == nullptr || named[0] == 0) {
    add("cxl0", {"cxl:"});
    add_interfaces();
    return;
  }
  std::string_view rest = named;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const size_t equals = one.find('=');
    if (equals == 0 || equals == one.npos || equals >= URMA_MAX_NAME) {
      log(URMA_VLOG_LEVEL_WARNING, "urma_init",
          "URMA_DEVICES: \"%.*s\" is not a device. Fix: write NAME=DEVICE, as in "
          "urma0=udp:10.0.0.5:0, with ; between several",
          static_cast<int>(one.size()), one.data());
      continue;
    }
    add(one.substr(0, equals), {std::string(one.substr(equals + 1))});
  }
}

std::vector<Device*> DeviceList::all() const {
  const std::lock_guard held(mutex_);
  std::vector<Device*> out;
  for (const auto& device : devices_) out.push_back(device.get());
  return out;
}

Device* DeviceList::known(std::string_view name) const {
  for (const auto& device : devices_) {
    if (name == device->name) return device.get();
  }
  return nullptr;
}

Device* DeviceList::named(std::string_view name) {
  const std::lock_guard held(mutex_);
  if (Device* const there = known(name)) return there;
  if (name.find(':') == name.npos || name.size() >= URMA_MAX_NAME) return nullptr;
  add(name, {std::string(name)});
  return known(name);
}

Result<std::vector<urma_eid_t>> DeviceList::eids(Device& device) {
  const std::lock_guard held(mutex_);
  std::vector<urma_eid_t> found;
  for (size_t i = 0; i < device.strings.size(); ++i) {
    if (!device.eids[i]) {
      const auto eid = eid_of(device.strings[i]);
      if (!eid) return eid.error();
      device.eids[i] = *eid;
    }
    found.push_back(*device.eids[i]);
  }
  return found;
}

std::vector<std::string> DeviceList::strings(const Device& device) const {
  const std::lock_guard held(mutex_);
  return device.strings;
}

void DeviceList::note(Device& device, uint32_t index, const std::string& text,
                      const urma_eid_t& eid) {
  const std::lock_guard held(mutex_);
  const bool has_it = index < device.strings.size() && device.strings[index] == text;
  if (has_it) device.eids[index] = eid;
}

urma_device_attr_t attributes_of(const Device& device) {
  urma_device_attr_t made = attributes();
  urma_port_attr_t& port = made.port_attr[0];
  const std::string name = interface_with(eid_in(DeviceList::get().strings(device)[0]));
  const uint64_t mtu = number_in("/sys/class/net/" + name + "/mtu");
  const uint64_t megabits = number_in("/sys/class/net/" + name + "/speed");
  if (mtu > 0) port.active_mtu = static_cast<urma_mtu_t>(most_of(mtu, mtus) + URMA_MTU_256);
  if (megabits > 0) port.active_speed = static_cast<urma_speed_t>(most_of(megabits, speeds));
  return made;
}

const urma_device_attr_t& attributes() {
  static const urma_device_attr_t only = [] {
    urma_device_attr_t made{};
    urma_device_cap_t& cap = made.dev_cap;
    cap.feature.bs.oor = cap.feature.bs.non_pin = cap.feature.bs.selective_retrans = 1;
    cap.feature.bs.error_suspend = cap.feature.bs.outorder_comp = cap.feature.bs.ctp_en = 1;
    cap.feature.bs.muti_seg_per_token_id = 1;
    cap.max_jfc = cap.max_jfs = cap.max_jfr = cap.max_jetty = max_jetties;
    cap.max_jetty_grp = max_jetties;
    cap.max_jetty_in_jetty_grp = max_group_members;
    cap.max_jfc_depth = 64 * 1024;
    cap.max_jfr_depth = 32 * 1024 - 1;
    cap.max_jfs_depth = 32 * 1024 - spare_berths;
    cap.max_jfs_inline_len = max_inline_bytes;
    cap.max_jfs_sge = cap.max_jfr_sge = max_buffers;
    cap.max_jfs_rsge = max_buffers;  // each begins where the earlier one ends
    cap.max_msg_size = max_send_bytes;
    cap.max_read_size = cap.max_write_size = max_write_bytes;
    cap.max_cas_size = cap.max_swap_size = 8;
    cap.max_fetch_and_add_size = cap.max_fetch_and_sub_size = cap.max_fetch_and_and_size = 8;
    cap.max_fetch_and_or_size = cap.max_fetch_and_xor_size = 8;
    cap.atomic_feat.value = 0x7f;
    cap.trans_mode = URMA_TM_RM | URMA_TM_RC | URMA_TM_UM;
    cap.congestion_ctrl_alg = URMA_CC_NONE | URMA_CC_DCQCN | URMA_CC_CAQM | URMA_CC_LDCP;
    cap.ceq_cnt = 1;
    cap.max_tp_in_tpg = 1;
    cap.max_eid_cnt = URMA_MAX_EID_CNT;
    cap.page_size_cap = 4096;
    cap.rm_order_cap.bs.oi = 1;
    cap.rc_order_cap.bs.ot = cap.rc_order_cap.bs.ol = 1;
    cap.rm_tp_cap.bs.rtp = cap.rm_tp_cap.bs.ctp = 1;
    cap.rc_tp_cap = cap.rm_tp_cap;
    cap.um_tp_cap.bs.utp = 1;
    // Programs look for a priority whose only type is the one that they want (RTP, CTP).
    for (uint32_t i = 0; i < URMA_MAX_PRIORITY_CNT; ++i) {
      cap.priority_info[i] = {.SL = i, .tp_type = {.value = i == 6 || i == 7 ? 2u : 1u}};
    }
    made.port_cnt = 1;
    made.port_attr[0] = {.max_mtu = URMA_MTU_8192,
                         .state = URMA_PORT_ACTIVE,
                         .active_width = URMA_LINK_X1,
                         .active_speed = URMA_SP_10G,
                         .active_mtu = URMA_MTU_4096};
    made.reserved_jetty_id_min = number(first_user_jetty);
    made.reserved_jetty_id_max = first_automatic - 1;
    return made;
  }();
  return only;
}

}  // namespace urma::umdk
