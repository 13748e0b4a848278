// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "umdk/include/ub/umdk/urma/urma_api.h"

namespace urma::apps::capi {

// A device of the C API, and its EIDs.
struct ListedDevice {
  urma_device_t* device = nullptr;
  std::string name;
  std::vector<urma_eid_info_t> eids;
  std::string error;  // why the EIDs are not known; or empty
};

// Lists the devices of this process (URMA_DEVICES, or the window and the network interfaces). Opens
// each for a moment. Throws a Failure if there is none.
std::vector<ListedDevice> list_devices();

}  // namespace urma::apps::capi
