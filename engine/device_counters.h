#pragma once

#include <optional>
#include <span>

#include "engine/news.h"
#include "urma/core/path.h"

namespace urma::engine {

class Engine;

// What has a device counted? These functions gather the counters of its parts; none of them changes
// anything. Only the thread that runs the engine calls it.

Statistics statistics_of(Engine& engine);
Snapshot snapshot_of(Engine& engine);
// Writes the paths to this peer. Returns how many, 0 if there is only one, and nothing if the peer
// has exited or restarted.
std::optional<size_t> paths_to(Engine& engine, PeerId peer, std::span<Path, most_paths> out);

}  // namespace urma::engine
