// SPDX-License-Identifier: Apache-2.0
// The trace hashes of small runs of urma_sim are recorded in sim_hashes.txt. They are the same at
// each level of optimisation and with sanitizers, because decisions depend on nothing but the
// options.

#include <fstream>
#include <sstream>

#include "apps/urma_sim/run.h"
#include "apps/urma_sim/world.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using apps::simulation::Choice;
using apps::simulation::Scenario;

const Scenario& scenario_of(std::string_view name) {
  for (const Scenario& one : apps::simulation::scenarios()) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no such scenario");
}

// A scenario with few senders and a short time.
Choice small(const Scenario& scenario, std::string_view cc) {
  Choice choice = scenario.usual;
  choice.cc = cc;
  choice.shape = scenario.shapes.front();
  choice.duration = 100us;
  if (scenario.name == "J1") choice.senders = 2;
  if (scenario.name == "I3") choice.senders = 4;
  if (scenario.name == "I3") choice.flow_bytes = 256 << 10;
  if (choice.flow_bytes > 0) choice.duration = {};
  return choice;
}

std::string hash_of(const Scenario& scenario, const Choice& choice) {
  const apps::simulation::Plan plan = plan_of(scenario, choice);
  apps::simulation::World world(plan, choice);
  return apps::simulation::hash_text(run(world, plan, choice).trace_hash);
}

// One line for each run: the scenario, the control and the hash.
template <class Each>
void for_each_run(Each each) {
  for (const Scenario& scenario : apps::simulation::scenarios()) {
    for (const std::string_view cc : {"aimd", "ldcp", "dcqcn", "caqm_w", "caqm_r"}) {
      each(scenario, small(scenario, cc));
    }
  }
  Choice lanes = small(scenario_of("I1"), "caqm_r");
  lanes.lanes = 2;
  each(scenario_of("I1"), lanes);
}

std::string line_of(const Scenario& scenario, const Choice& choice) {
  return std::string(scenario.name) + " " + std::string(choice.cc) +
         (choice.lanes > 1 ? " lanes " : " ") + hash_of(scenario, choice) + "\n";
}

TEST_CASE("urma_sim: small runs deliver what sim_hashes.txt records") {
  std::ifstream file(URMA_SIM_HASHES);
  std::ostringstream recorded;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') recorded << line << '\n';
  }
  std::string all;
  for_each_run(
      [&](const Scenario& scenario, const Choice& choice) { all += line_of(scenario, choice); });
  CHECK(all == recorded.str());
}

TEST_CASE("urma_sim: the same run twice delivers the same, another seed delivers otherwise") {
  const Scenario& scenario = scenario_of("I1");
  Choice choice = small(scenario, "caqm_r");
  const std::string hash = hash_of(scenario, choice);
  CHECK(hash_of(scenario, choice) == hash);
  choice.seed = 2;
  CHECK(hash_of(scenario, choice) != hash);
}

TEST_CASE("urma_sim: prints the hashes, to record them", "[.record]") {
  for_each_run([&](const Scenario& scenario, const Choice& choice) {
    std::fputs(line_of(scenario, choice).c_str(), stdout);
  });
}

}  // namespace
}  // namespace urma::test
