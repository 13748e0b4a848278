#include <fmt/format.h>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_feed/consumer.h"
#include "apps/urma_feed/producer.h"

namespace urma::apps::feed {
namespace {

Exit run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      apps::print(help());
      return Exit::ok;
    case Options::Mode::version:
      apps::print(fmt::format("urma_feed {}\n", library_version()));
      return Exit::ok;
    case Options::Mode::consume:
      return Consumer(options).run();
    case Options::Mode::produce:
      return produce(options);
  }
  return Exit::error;
}

}  // namespace
}  // namespace urma::apps::feed

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_feed", [&] {
    const urma::apps::feed::Options options = urma::apps::feed::parse_options(count, arguments);
    urma::apps::handle_signals();
    return urma::apps::feed::run(options);
  });
}
