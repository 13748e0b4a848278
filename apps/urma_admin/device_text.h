// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/capi/devices.h"

namespace urma::apps::admin {

// Returns the table of devices, as UMDK prints it: a line for each EID.
std::string device_table(const std::vector<capi::ListedDevice>& devices);

// Returns all that a device can do, a line for each capability, as UMDK prints it.
std::string whole_text(const capi::ListedDevice& device);

// Returns what a device can do, and the state of its port. Throws a Failure.
urma_device_attr_t attributes_of(const capi::ListedDevice& device);

}  // namespace urma::apps::admin
