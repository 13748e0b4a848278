// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "apps/urma_admin/processes.h"

namespace urma::apps::admin {

// Returns these devices with all that their processes show.
nlohmann::json to_json(const std::vector<capi::ListedDevice>& devices, const Pages& pages);

}  // namespace urma::apps::admin
