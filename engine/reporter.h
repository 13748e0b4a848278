// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "drivers/port_facts.h"
#include "engine/log.h"
#include "engine/stats_files.h"

namespace urma::engine {

class Engine;

// Returns the metrics that only this device has: those of its port, and of each path, if it has
// several: packets sent and lost, round trip.
std::vector<ObservedMetric> device_metrics(const drivers::PortFacts& facts);

// Shows the counters of a device while it runs: to other processes by a page, and to its
// application by a log. The thread that runs the passes calls `report` after a change, at most once
// in each `interval`.
class Reporter {
 public:
  static constexpr Duration interval = std::chrono::milliseconds(100);

  Reporter(std::optional<StatsFile> page, std::unique_ptr<Log> log)
      : page_(std::move(page)), log_(std::move(log)) {}

  // Starts the log. Errors: no_resources.
  Result<void> start(const std::string& description);
  // Writes the page and offers the counters to the log. Called by the thread that has the engine
  // token; neither allocates nor locks. Returns false if the log is busy: report again after the
  // interval.
  bool report(Engine& engine, Time machine);
  // Removes the page, and logs the last lines. Call no `report` after it.
  void close(const Snapshot& last);
  // For a forked child: closes the page without removing it, and does not wait for the log's
  // thread.
  void abandon();

 private:
  std::optional<StatsFile> page_;
  std::unique_ptr<Log> log_;
  std::array<transport::ChannelView, ChannelSlots::most_rows> views_;  // within `report` only
  ObjectViews objects_;                                                // within `report` only
};

}  // namespace urma::engine
