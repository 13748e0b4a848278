// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/common/captures.h"
#include "apps/urma_perf/case_run.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// The client of a measurement: it has a device, and the connection to a server.
class Client {
 public:
  // An empty `device` means one that reaches the host.
  Client(const Options& options, const std::string& device, const std::string& host,
         std::vector<int> processors);

  Result run(const Case& what, const Schedule& schedule);

  // The device string that was given or chosen.
  const std::string& device() const { return device_text_; }
  std::string description() const { return device_.description(); }
  const std::string& server_description() const { return link_.welcome().device; }

 private:
  std::string why_not_mapped(const Case& what) const;
  Result measure(const Case& what, Schedule& schedule);

  const Options& options_;
  std::string device_text_;
  std::vector<int> processors_;
  apps::Captures captures_{"urma_perf"};  // destroyed after the device
  Device device_;
  Link link_;
};

// Returns how each size is to be measured according to the command line.
Schedule schedule_for(const Options& options);

}  // namespace urma::apps::perf
