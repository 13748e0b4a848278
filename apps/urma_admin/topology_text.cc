// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/topology_text.h"

#include <fmt/format.h>

#include "apps/capi/eid.h"

namespace urma::apps::admin {
namespace {

std::string edge_line(std::string_view edge) {
  return fmt::format("{:=<26} topo map {} {:=<29}\n", "", edge, "");
}

std::string peers_text(const Opened& process) {
  std::string out;
  for (const ObservedChannel& channel : process.page.channels->shown) {
    const Place peer = place_of(channel.peer);
    out += fmt::format("\t Connected to {}, uasid {}, path {}: {}, process {}\n",
                       capi::to_text(peer.eid), peer.uasid, channel.path, channel.state,
                       process.process());
  }
  return out;
}

std::string peers_text(const urma_eid_t& eid, const std::vector<const Opened*>& opened) {
  std::string out;
  for (const Opened* const one : opened) {
    if (one->page.channels && capi::same(one->at.eid, eid)) out += peers_text(*one);
  }
  return out.empty() ? "\t Not connected\n" : out;
}

}  // namespace

std::string topology_text(const std::vector<capi::ListedDevice>& devices, const Pages& pages) {
  std::string out = edge_line("start");
  uint32_t number = 0;
  for (const capi::ListedDevice& device : devices) {
    const auto opened = opened_at(device, pages);
    for (const urma_eid_info_t& one : device.eids) {
      out += fmt::format("Dev {} ({}): {}\n", number++, device.name, capi::to_text(one.eid)) +
             peers_text(one.eid, opened);
    }
  }
  return out + edge_line("end");
}

}  // namespace urma::apps::admin
