// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/common/server_threads.h"
#include "apps/urma_notify/delivery.h"
#include "apps/urma_notify/demo.h"
#include "apps/urma_notify/items.h"
#include "apps/urma_notify/lines.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/receiver.h"

namespace urma::apps::notify {
namespace {

Exit serve(const Options& options) {
  const File folder = open_folder(options.paths[0]);
  std::signal(SIGXFSZ, SIG_IGN);  // then a write beyond the limit on file sizes fails with an error
  std::atomic<bool> over{false};
  const auto receivers = apps::make_servers(
      options.devices,
      [&](const std::string& device) {
        return std::make_unique<Receiver>(device, folder.get(), over);
      },
      complain);
  for (const auto& receiver : receivers) receiver->say_where();
  std::vector<std::function<void()>> bodies;
  for (const auto& receiver : receivers) bodies.emplace_back([&receiver] { receiver->run(); });
  apps::run_together(bodies, over);
  return Exit::ok;
}

// Sends to all receivers at the same time, each on a thread of its own.
std::vector<Verdict> deliver_to_all(const Options& options, const std::vector<Item>& items) {
  const bool several = options.hosts.size() > 1;
  std::vector<Verdict> verdicts(options.hosts.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < options.hosts.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::string& host = options.hosts[i];
      const Voice voice{
          .prefix = several ? host + ": " : "", .lines = !options.json, .bar = !several};
      verdicts[i] = deliver(options, items, host, voice);
    });
  }
  threads.clear();
  return verdicts;
}

Exit first_failure(const std::vector<Verdict>& verdicts) {
  for (const Verdict& verdict : verdicts) {
    if (verdict.whole() != Exit::ok) return verdict.whole();
  }
  return Exit::ok;
}

// The only error of a receiver becomes that of the program.
std::string only_error(const Verdict& verdict) {
  if (verdict.exit != Exit::ok) return verdict.error;
  return verdict.items == 1 ? verdict.sent[0].error : "";
}

Exit send(const Options& options) {
  const std::vector<Item> items = list_items(options);
  const std::vector<Verdict> verdicts = deliver_to_all(options, items);
  const Exit exit = first_failure(verdicts);
  if (options.json) {
    apps::print_json(to_json(verdicts, exit));
    return exit;
  }
  const bool several = verdicts.size() > 1;
  for (const Verdict& verdict : verdicts) {
    const std::string error = only_error(verdict);
    if (!several && !error.empty()) throw Failure(exit, error);
    if (!error.empty()) complain(fmt::format("{}: {}", verdict.host, error));
    if (several || items.size() > 1) say_line(summary(verdict));
  }
  return exit;
}

Exit run(const Options& options) {
  if (options.mode == Options::Mode::demo) return demo(options);
  return options.mode == Options::Mode::serve ? serve(options) : send(options);
}

}  // namespace
}  // namespace urma::apps::notify

int main(int count, char** arguments) {
  using namespace urma::apps;
  return run_program<notify::Options>(
      {.name = "urma_notify",
       .version = fmt::format("{}, protocol {}", library_version(), notify::protocol),
       .help = notify::help,
       .parse = notify::parse_options,
       .run = notify::run},
      count, arguments);
}
