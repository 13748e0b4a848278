// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"
#include "apps/urma_stat/options.h"
#include "apps/urma_stat/top.h"

int main(int count, char** arguments) {
  namespace program = urma::apps::stat;  // ::stat is a struct of the system
  return urma::apps::run_program<program::Options>({.name = "urma_top",
                                                    .version = urma::apps::library_version(),
                                                    .help = program::top_help,
                                                    .parse = program::parse_top_options,
                                                    .run = program::show_top},
                                                   count, arguments);
}
