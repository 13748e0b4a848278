// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

struct PeersShown {
  std::optional<size_t> room = {};  // the limit to the width
  bool all = false;                 // also channels that are idle
};

// Returns a line for each channel and path of the devices, then why channels use another congestion
// control than the one that was asked for, and how many channels are not shown. Columns without any
// value are left out. If there is a limit to the width, the processes are written above their
// channels, and as many columns are left out as do not fit.
std::string peers_table(const Look& look, const PeersShown& how = {});
// Returns the channels of a device, or null if its version does not report them.
nlohmann::json peers_json(const Row& row);

}  // namespace urma::apps::stat
