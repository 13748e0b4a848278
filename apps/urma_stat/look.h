// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "urma/observe.hpp"

namespace urma::apps::stat {

// A device, and its progress since the previous look.
struct Row {
  ObservedDevice device;
  // Rates per second, by metric; empty if not known yet. Metrics of a present state ("now") have no
  // rate.
  std::vector<std::optional<double>> rates;
  std::optional<double> age_seconds;  // of the values; empty if the device has not reported yet
  // How many bytes the peer of each shown channel acknowledged per second: since the previous look,
  // or in the first look since the channel was made. Empty if not known.
  std::vector<std::optional<double>> channel_rates;

  // Returns nothing if the device's version has no such metric, or if its rate is not known.
  std::optional<double> value(std::string_view metric) const;
  std::optional<double> rate(std::string_view metric) const;
};

// All chosen devices at one time.
struct Look {
  std::vector<Row> rows;
  std::vector<std::string> skipped;
  uint64_t unread = 0;  // pages that are not read, of which `skipped` speaks
  int64_t time = 0;     // seconds since 1970
};

// Looks at the devices of one process or of all, and remembers the previous look for the rates.
class Watcher {
 public:
  // `process` is a number or a name. Empty means all processes. `user`: of one user only; without
  // it, of all whose devices this process may see.
  explicit Watcher(std::string process, std::optional<uint32_t> user = {})
      : process_(std::move(process)), user_(user) {}

  Look look();

 private:
  bool wanted(const ObservedDevice& device) const;
  Row row(ObservedDevice device, double seconds) const;

  std::string process_;
  std::optional<uint32_t> user_;
  std::map<std::string, ObservedDevice> before_;
  Time looked_at_{};
};

}  // namespace urma::apps::stat
