// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_perf/budget.h"
#include "apps/urma_perf/choice.h"
#include "apps/urma_perf/client.h"
#include "apps/urma_perf/comparison.h"
#include "apps/urma_perf/environment.h"
#include "apps/urma_perf/group.h"
#include "apps/urma_perf/help.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/main_job.h"
#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/output.h"
#include "apps/urma_perf/ping.h"
#include "apps/urma_perf/registration.h"
#include "apps/urma_perf/selftest.h"
#include "apps/urma_perf/serve.h"

namespace urma::apps::perf {
namespace {

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
  const bool job = options.mode == Options::Mode::main_job;
  Output output(options, job || options.limit);
  const std::vector<Case> cases = job ? main_cases(options) : options.cases();
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

// The device is said if the command line does not show it, and with --verbose why it was chosen.
void say_device(const Options& options) {
  using Mode = Options::Mode;
  const bool named_elsewhere = !options.device_from.empty() && options.device_from != "--device";
  const bool measures = options.self || options.mode == Mode::test ||
                        options.mode == Mode::main_job || options.mode == Mode::group;
  if (options.quiet || !measures || (!options.verbose && !named_elsewhere)) return;
  for (const std::string& line : explain_device(options)) {
    print_error(options.verbose ? line : "urma_perf: " + line);
  }
}

Exit run(const Options& options) {
  say_device(options);
  switch (options.mode) {
    case Options::Mode::help:
      print(help());
      return Exit::ok;
    case Options::Mode::help_all:
      print(help_all());
      return Exit::ok;
    case Options::Mode::version:
      print(fmt::format("urma_perf {}, protocol {}, commit {}\n", library_version(), protocol,
                        commit()));
      return Exit::ok;
    case Options::Mode::budget:
      return budget(options);
    case Options::Mode::server:
      return serve(options);
    case Options::Mode::registration:
      return measure_registration(options);
    case Options::Mode::selftest:
      return selftest(options);
    case Options::Mode::ping:
      return ping(options);
    case Options::Mode::group:
      return measure_group(options);
    case Options::Mode::comparison:
      print_comparison(options.before, options.after);
      return Exit::ok;
    case Options::Mode::main_job:
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
