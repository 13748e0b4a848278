// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/processes.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/capi/eid.h"
#include "apps/common/failure.h"
#include "urma/core/endpoint.h"

namespace urma::apps::admin {

Place place_of(const std::string& endpoint) {
  const auto at = parse_endpoint(endpoint);
  return at ? umdk::place_of(*at) : Place{};
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
