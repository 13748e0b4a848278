// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/result_files.h"

#include "apps/urma_perf/hgrm.h"
#include "apps/urma_perf/plot.h"

namespace urma::apps::perf {

ResultFiles::ResultFiles(const Options& options) {
  if (!options.json_file.empty()) json_.emplace("--json-file", options.json_file);
  if (!options.histogram_file.empty()) histogram_.emplace("--hist", options.histogram_file);
  if (!options.plot_file.empty()) plot_.emplace("--plot", options.plot_file);
}

void ResultFiles::add(const Result& result) {
  if (!histogram_ && !plot_) return;
  results_.push_back(result);
  for (Round& round : results_.back().rounds) round.times = {};
}

void ResultFiles::write(const nlohmann::json& whole, const std::string& note) {
  if (json_) json_->write(whole.dump(2) + "\n");
  if (plot_) plot_->write(plot(results_, note));
  // There is at most one result, and none if Ctrl-C came during the warm-up.
  if (!histogram_ || results_.empty()) return;
  histogram_->write(hgrm_text(results_.front().times, results_.front().what.test->units_per_us()));
}

}  // namespace urma::apps::perf
