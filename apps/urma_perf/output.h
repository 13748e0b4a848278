// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/urma_perf/client.h"
#include "apps/urma_perf/json_output.h"
#include "apps/urma_perf/result_files.h"
#include "apps/urma_perf/table.h"

namespace urma::apps::perf {

// Prints the results of a run as they are measured, in the form that the user asked for, and judges
// them at the end.
class Output {
 public:
  // `limit`: some row has a limit.
  Output(const Options& options, bool limit);

  void add(const Client& client, const Result& result);
  // A result that other processes have measured.
  void add(const Result& result);
  // Prints the rest. Returns how the program ends.
  Exit finish();

 private:
  nlohmann::json whole() const;
  void print_row(const Result& result, const nlohmann::json& fields);
  Exit judge() const;

  const Options& options_;
  Table table_;
  ResultFiles files_;
  nlohmann::json environment_ = nlohmann::json::object();
  nlohmann::json results_ = nlohmann::json::array();
  double waited_percent_ = 0;
  uint64_t wrong_ = 0;
  std::vector<std::string> broken_;  // thresholds, and by which result
};

}  // namespace urma::apps::perf
