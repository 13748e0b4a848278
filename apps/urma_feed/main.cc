#include <fmt/format.h>

#include <exception>

#include "apps/common/captures.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_feed/consumer.h"
#include "apps/urma_feed/producer.h"

namespace urma::feed {
namespace {

Exit run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      apps::print(help());
      return Exit::ok;
    case Options::Mode::version:
      apps::print(fmt::format("urma_feed {}\n", URMA_VERSION));
      return Exit::ok;
    case Options::Mode::consume:
      return Consumer(options).run();
    case Options::Mode::produce:
      return produce(options);
  }
  return Exit::error;
}

Exit main_exit(int count, char** arguments) {
  try {
    const Options options = parse_options(count, arguments);
    apps::handle_signals();
    return apps::exit_with_captures(run(options));
  } catch (const Failure& failure) {
    apps::print_error(fmt::format("urma_feed: {}", failure.what()));
    return failure.exit();
  } catch (const std::exception& e) {
    apps::print_error(
        fmt::format("urma_feed: {}. Fix: report this as a fault of urma_feed", e.what()));
    return Exit::error;
  }
}

}  // namespace
}  // namespace urma::feed

int main(int count, char** arguments) {
  urma::apps::prepare_output();
  return static_cast<int>(urma::feed::main_exit(count, arguments));
}
