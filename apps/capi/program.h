// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/program.h"

namespace urma::apps::capi {

// The variables of the environment that the C API reads.
inline const std::initializer_list<std::string_view> variables = {"URMA_DEVICES", "URMA_PING",
                                                                  "URMA_SEGMENTS"};

// Does all that `main` of a program of the C API has to do. Sets the version and the variables.
template <class Options>
int run_program(Program<Options> program, int count, char** arguments) {
  program.version = library_version();
  program.variables = variables;
  return apps::run_program(program, count, arguments);
}

}  // namespace urma::apps::capi
