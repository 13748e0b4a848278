#include <fmt/format.h>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_sim/report.h"

namespace urma::apps::simulation {
namespace {

Exit simulate(const Options& options) {
  const Plan plan = plan_of(*options.scenario, options.choice);
  const Result result = run(plan, options.choice);
  if (options.only_hash) {
    print(hash_text(result.trace_hash) + "\n");
  } else if (options.json) {
    print_json(report_json(options, plan, result));
  } else {
    print(report_text(options, plan, result));
  }
  return Exit::ok;
}

Exit run_mode(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      print(help());
      return Exit::ok;
    case Options::Mode::version:
      print(fmt::format("urma_sim {}\n", library_version()));
      return Exit::ok;
    case Options::Mode::run:
      return simulate(options);
  }
  return Exit::error;
}

}  // namespace
}  // namespace urma::apps::simulation

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_sim", [&] {
    const auto options = urma::apps::simulation::parse_options(count, arguments);
    urma::apps::handle_signals();
    return urma::apps::simulation::run_mode(options);
  });
}
