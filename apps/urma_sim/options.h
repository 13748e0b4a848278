// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/urma_sim/scenario.h"

namespace urma::apps::simulation {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, run };

  Mode mode = Mode::help;
  const Scenario* scenario = nullptr;
  Choice choice;
  bool json = false;
  bool only_hash = false;
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

}  // namespace urma::apps::simulation
