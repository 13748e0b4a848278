// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/split_error.h"

namespace urma::apps::info {

// The driver's errors say what is wrong with the link, the addresses, the modules, and the memory
// that may be locked.
Finding check_verbs(const Host& host) {
  const std::vector<std::string> adapters = host.names("/sys/class/infiniband");
  if (adapters.empty()) return ok("no RDMA adapter; only verbs: devices need one");
  std::string list;
  for (const std::string& adapter : adapters) {
    if (const Result<void> opened = host.open("verbs:" + adapter); !opened) {
      const SplitError error = split_error(opened.error().message);
      return {Level::warn, fmt::format("{} does not open: {}", adapter, error.what), error.fix};
    }
    list += (list.empty() ? "" : ", ") + adapter;
  }
  return ok(fmt::format("opens on {}", list));
}

}  // namespace urma::apps::info
