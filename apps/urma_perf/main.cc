#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_perf/budget.h"
#include "apps/urma_perf/client.h"
#include "apps/urma_perf/environment.h"
#include "apps/urma_perf/help.h"
#include "apps/urma_perf/json_output.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/main_job.h"
#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/registration.h"
#include "apps/urma_perf/serve.h"
#include "apps/urma_perf/table.h"

namespace urma::apps::perf {
namespace {

// Returns how many characters a line of the table may have.
size_t table_width(const Options& options) {
  constexpr size_t usual = 80;
  return options.wide ? SIZE_MAX : std::max(usual, terminal_columns(STDOUT_FILENO));
}

// Collects the results and prints them: a table for people, JSON for programs.
class Output {
 public:
  Output(const Options& options, bool limit)
      : options_(options), table_(stdout, table_width(options), limit) {
    if (!options.json_file.empty()) file_.emplace(options.json_file);
  }

  void add(const Client& client, const Result& result) {
    if (result.rounds.empty()) return;  // Ctrl-C came during the warm-up
    environment_["device"] = client.description();
    environment_["peer_device"] = client.server_description();
    waited_percent_ = std::max(waited_percent_, result.waited_percent());
    wrong_ += result.verdict.wrong;
    // The header is printed only with the first result, so that an error stands alone on the
    // screen.
    if (!options_.json && results_.empty()) table_.header();
    results_.push_back(to_json(result));
    if (!options_.json) table_.row(result);
  }

  Exit finish() {
    if (!options_.json) table_.footer();
    if (options_.json || file_) {
      const nlohmann::json whole = this->whole();
      if (options_.json) print_json(whole);
      if (file_) file_->write(whole);
    }
    if (std::ferror(stdout) != 0) {
      throw Failure(Exit::error,
                    "writing the table to stdout failed. Fix: free some space, or use "
                    "--json-file");
    }
    if (wrong_ > 0) return Exit::wrong_bytes;
    return interrupted() ? Exit::interrupted : Exit::ok;
  }

 private:
  nlohmann::json whole() {
    nlohmann::json about = environment(options_.command);
    about.update(environment_);
    about["run_queue_wait_percent"] = waited_percent_;
    about["interrupted"] = interrupted();
    return {{"schema", json_schema}, {"environment", about}, {"results", results_}};
  }

  const Options& options_;
  Table table_;
  std::optional<JsonFile> file_;
  nlohmann::json environment_;
  nlohmann::json results_ = nlohmann::json::array();
  double waited_percent_ = 0;
  uint64_t wrong_ = 0;
};

Exit run_here(const Options& options) {
  const bool job = options.mode == Options::Mode::main_job;
  const std::vector<SelfRun> runs = job ? main_job(options) : one_test(options);
  Output output(options, job || options.limit);
  run_self(options, runs,
           [&](const Client& client, Result&& result) { output.add(client, result); });
  return output.finish();
}

Exit run_there(const Options& options) {
  Client client(options, options.device, options.host, processors());
  Output output(options, options.limit);
  const std::vector<Case> cases = options.cases();
  Schedule schedule = schedule_for(options);
  schedule.rows = cases.size();
  for (const Case& what : cases) {
    if (interrupted()) break;
    ++schedule.row;
    schedule.later_rows_time =
        static_cast<int64_t>(schedule.rows - schedule.row) * schedule.row_time();
    output.add(client, client.run(what, schedule));
  }
  return output.finish();
}

Exit run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      fmt::print("{}", help());
      return Exit::ok;
    case Options::Mode::help_all:
      fmt::print("{}", help_all());
      return Exit::ok;
    case Options::Mode::version:
      fmt::print("urma_perf {}, protocol {}\n", library_version(), protocol);
      return Exit::ok;
    case Options::Mode::budget:
      return budget(options);
    case Options::Mode::server:
      return serve(options);
    case Options::Mode::registration:
      return measure_registration(options);
    case Options::Mode::main_job:
      return run_here(options);
    case Options::Mode::test:
      return options.self ? run_here(options) : run_there(options);
  }
  return Exit::error;
}

}  // namespace
}  // namespace urma::apps::perf

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_perf", [&] {
    const urma::apps::perf::Options options = urma::apps::perf::parse_options(count, arguments);
    urma::apps::handle_signals();
    if (options.cpu) urma::apps::perf::pin(*options.cpu);
    return urma::apps::perf::run(options);
  });
}
