// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/common/devices.h"
#include "apps/common/servers.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::apps::perf {

// Describes urma_perf for a client of this test. The servers that `--self` starts have a name of
// their own, so that a server for everyone may run at the same address.
Service service_for(std::string_view test, bool self = false);

// How a device is to be opened, beside its device string.
struct DeviceChoices {
  const ThreadsMode& mode;
  const NamedRetransmission* retransmit = nullptr;  // null means the device's default
  std::string congestion{};                         // empty means the device's default
  bool profile = false;                             // times its stages
};
// Warnings about the choices go to stderr.
Device open_device(const std::string& text, const DeviceChoices& choices);

}  // namespace urma::apps::perf
