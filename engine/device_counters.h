// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "engine/news.h"
#include "urma/core/path.h"

namespace urma::engine {

class Engine;

// These functions gather the counters of a device's parts, and change nothing. Only the thread that
// runs the engine calls them.

Statistics statistics_of(Engine& engine);
Snapshot snapshot_of(Engine& engine);
// Writes the paths to this peer to `out`. Returns how many they are, 0 if there is only one, or
// nothing if the peer has exited or restarted.
std::optional<size_t> paths_to(Engine& engine, PeerId peer, std::span<Path, most_paths> out);

}  // namespace urma::engine
