#include "apps/urma_perf/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "apps/common/output.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/server.h"

namespace urma::perf {
namespace {

// Servers that could be made. One that could not matters only if it is the only one: its address
// may be another server's, or not be ready yet.
std::vector<std::unique_ptr<Server>> make_servers(const Options& options, std::atomic<bool>& over) {
  const bool named = !options.device.empty();
  const auto devices = named ? std::vector{options.device} : devices_of_this_host();
  std::vector<std::unique_ptr<Server>> servers;
  std::optional<Failure> first;
  for (const std::string& device : devices) {
    try {
      servers.push_back(std::make_unique<Server>(options, device, over));
    } catch (const Failure& failure) {
      if (!first) first = failure;
      if (options.verbose) print_error(fmt::format("without {}: {}", device, failure.what()));
    }
  }
  if (servers.empty()) throw *first;
  return servers;
}

}  // namespace

Exit serve(const Options& options) {
  std::atomic<bool> over{false};
  const auto servers = make_servers(options, over);
  // A parent process reads only one line; people read them all.
  for (const auto& server : servers) {
    server->say_where();
    if (options.report_to) break;
  }
  std::vector<std::exception_ptr> failed(servers.size());
  const auto run = [&](size_t i) {
    try {
      servers[i]->run();
    } catch (const std::exception&) {
      failed[i] = std::current_exception();
    }
    over = true;
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < servers.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& why : failed) {
    if (why) std::rethrow_exception(why);
  }
  return Exit::ok;
}

}  // namespace urma::perf
