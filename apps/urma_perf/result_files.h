// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/urma_perf/options.h"
#include "apps/urma_perf/result.h"
#include "apps/urma_perf/whole_file.h"

namespace urma::apps::perf {

// The files that get the results of a run: --json-file, --hist and --plot. All are created before
// anything is measured, and written at the end.
class ResultFiles {
 public:
  explicit ResultFiles(const Options& options);

  void add(const Result& result);
  // `whole`: all results as JSON. `note` stands below a drawing.
  void write(const nlohmann::json& whole, const std::string& note);

 private:
  std::optional<WholeFile> json_;
  std::optional<WholeFile> histogram_;
  std::optional<WholeFile> plot_;
  std::vector<Result> results_;  // only if they are needed
};

}  // namespace urma::apps::perf
