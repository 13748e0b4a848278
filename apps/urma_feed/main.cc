// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"
#include "apps/urma_feed/consumer.h"
#include "apps/urma_feed/input.h"
#include "apps/urma_feed/producer.h"

namespace urma::apps::feed {
namespace {

Exit run(const Options& options) {
  if (options.mode == Options::Mode::consume) return Consumer(options).run();
  return options.input ? produce_input(options) : produce(options);
}

}  // namespace
}  // namespace urma::apps::feed

int main(int count, char** arguments) {
  using namespace urma::apps;
  return run_program<feed::Options>({.name = "urma_feed",
                                     .version = library_version(),
                                     .help = feed::help,
                                     .parse = feed::parse_options,
                                     .run = feed::run},
                                    count, arguments);
}
