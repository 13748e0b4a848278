// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/serve.h"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "apps/common/output.h"
#include "apps/common/server_threads.h"
#include "apps/urma_perf/server.h"

namespace urma::apps::perf {

Exit serve(const Options& options) {
  std::atomic<bool> over{false};
  std::vector<std::string> named;
  if (!options.device.empty()) named.push_back(options.device);
  const auto servers = apps::make_servers(
      named,
      [&](const std::string& device) { return std::make_unique<Server>(options, device, over); },
      [&](const std::string& line) {
        if (options.verbose) print_error(line);
      });
  // A parent process reads only one line. Without a parent, all lines are printed for people.
  for (const auto& server : servers) {
    server->say_where();
    if (options.report_to) break;
  }
  std::vector<std::function<void()>> bodies;
  for (const auto& server : servers) bodies.emplace_back([&server] { server->run(); });
  apps::run_together(bodies, over);
  return Exit::ok;
}

}  // namespace urma::apps::perf
