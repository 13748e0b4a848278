// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_sim/report.h"
#include "apps/urma_sim/world.h"

namespace urma::apps::simulation {
namespace {

Exit simulate(const Options& options) {
  const Plan plan = plan_of(*options.scenario, options.choice);
  // The process ends with all devices open: to close a thousand of them takes as long as a run, and
  // other processes do not know them.
  static World* const world = new World(plan, options.choice);
  const Result result = run(*world, plan, options.choice);
  if (options.only_hash) {
    print(hash_text(result.trace_hash) + "\n");
  } else if (options.json) {
    print_json(report_json(options, plan, result));
  } else {
    print(report_text(options, plan, result));
  }
  return Exit::ok;
}

}  // namespace
}  // namespace urma::apps::simulation

int main(int count, char** arguments) {
  using namespace urma::apps;
  return run_program<simulation::Options>({.name = "urma_sim",
                                           .version = library_version(),
                                           .help = simulation::help,
                                           .parse = simulation::parse_options,
                                           .run = simulation::simulate},
                                          count, arguments);
}
