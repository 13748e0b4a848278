#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/log.h"
#include "engine/stats_files.h"

namespace urma::engine {

class Engine;

// What the page of a device with several paths says of each: packets sent and lost, round trip.
std::vector<ObservedMetric> path_metrics(std::span<const Endpoint> paths);

// What a device shows of itself while it runs: a page of numbers to whoever looks from outside, and
// lines to its application. Both come from one look at its counters, which who runs the passes
// takes when something has changed, at most so often.
class Reporter {
 public:
  static constexpr Duration interval = std::chrono::milliseconds(100);

  Reporter(std::optional<StatsFile> page, std::unique_ptr<Log> log)
      : page_(std::move(page)), log_(std::move(log)) {}

  Result<void> start(const std::string& description);
  // With the token; neither allocates nor locks. False: not everything could be handed over, so
  // report again after the interval.
  bool report(Engine& engine, Time machine);
  // The page goes, and the last lines are told. Nothing is reported any more.
  void close(const Snapshot& last);
  // In a child of the process that opened the device.
  void abandon();

 private:
  std::optional<StatsFile> page_;
  std::unique_ptr<Log> log_;
};

}  // namespace urma::engine
