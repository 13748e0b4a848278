#pragma once

#include <string>
#include <vector>

#include "apps/common/captures.h"
#include "apps/urma_perf/case_run.h"
#include "apps/urma_perf/options.h"

namespace urma::perf {

// Everything a measurement needs at this end: a device, and a server that answers on it.
class Client {
 public:
  // `device` empty: whatever reaches the host.
  Client(const Options& options, const std::string& device, const std::string& host,
         std::vector<int> processors);

  Result run(const Case& what, const Schedule& schedule);

  // As it was given or chosen.
  const std::string& device() const { return device_text_; }
  std::string description() const { return device_.description(); }
  const std::string& server_description() const { return link_.welcome().device; }

 private:
  std::string why_not_mapped(const Case& what) const;
  Result measure(const Case& what, Schedule& schedule);
  std::string news();

  const Options& options_;
  std::string device_text_;
  std::vector<int> processors_;
  apps::Captures captures_{"urma_perf"};  // looks when the device has closed
  Device device_;
  Link link_;
};

// How the command line wants each size to be measured.
Schedule schedule_for(const Options& options);

}  // namespace urma::perf
