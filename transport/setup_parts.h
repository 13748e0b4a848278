// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/links.h"

namespace urma::transport {

// The parts of a device's transport that set-up reads and changes; all outlive it. Each class of
// set-up takes them whole and keeps those that it uses.
struct SetupParts {
  Peers& peers;
  Tpns& tpns;
  OwnPaths& own_paths;
  PeerPaths& paths;
  Medium& medium;
  Links& links;
};

}  // namespace urma::transport
