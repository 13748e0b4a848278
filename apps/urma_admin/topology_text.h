// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/urma_admin/processes.h"

namespace urma::apps::admin {

// Returns each EID of the devices, as UMDK prints a topology, and below it the peers to which
// processes there have channels. There is nothing that knows of others.
std::string topology_text(const std::vector<capi::ListedDevice>& devices, const Pages& pages);

}  // namespace urma::apps::admin
