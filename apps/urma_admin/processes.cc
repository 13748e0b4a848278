// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "apps/capi/eid.h"
#include "apps/common/failure.h"
#include "urma/core/endpoint.h"

namespace urma::apps::admin {
namespace {

// An address in a window ends with the slot; the EID of the window is that of its first slot.
constexpr size_t slot_at = sizeof window_prefix + 8;

}  // namespace

Place place_of(const std::string& endpoint) {
  Place out;
  const auto at = parse_endpoint(endpoint);
  if (!at) return out;
  std::memcpy(out.eid.raw, at->address.bytes.data(), sizeof out.eid.raw);
  out.uasid = at->port;
  if (!in_window(at->address)) return out;
  uint32_t slot = 0;
  for (size_t i = slot_at; i < sizeof out.eid.raw; ++i) {
    slot = slot << 8 | out.eid.raw[i];
    out.eid.raw[i] = 0;
  }
  out.uasid = slot + 1;
  return out;
}

std::string Opened::process() const { return fmt::format("{} ({})", page.pid, page.process); }

uint64_t Opened::metric(std::string_view name) const {
  const uint64_t* const value = page.find(name);
  return value == nullptr ? 0 : *value;
}

Pages read_pages() {
  Observed all = must(observe_all_devices(), "reading the pages of devices");
  Pages out{.opened = {}, .skipped = std::move(all.skipped), .unread = all.unread};
  for (ObservedDevice& page : all.devices) {
    const Place at = place_of(page.endpoint);
    out.opened.push_back({.page = std::move(page), .at = at});
  }
  return out;
}

std::vector<const Opened*> opened_at(const capi::ListedDevice& device, const Pages& pages) {
  std::vector<const Opened*> out;
  for (const Opened& one : pages.opened) {
    const auto has = [&](const urma_eid_info_t& eid) { return capi::same(eid.eid, one.at.eid); };
    if (std::ranges::any_of(device.eids, has)) out.push_back(&one);
  }
  return out;
}

}  // namespace urma::apps::admin
