// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "apps/urma_perf/devices.h"

namespace urma::apps::perf {
namespace {

constexpr const char* others_unnamed =
    "not dpdk: and verbs:, which --device has to name with a port or an adapter: urma_info";

std::vector<std::string> explain_here(const Options& options) {
  if (options.mode == Options::Mode::main_job) {
    return {
        fmt::format("devices: {}, udp: and udp: with losses, which the main measurement compares",
                    default_device),
        others_unnamed};
  }
  return {fmt::format("device: {}, memory that both processes share, because both are on this host",
                      default_device),
          "not udp:, which sends each byte through the kernel: --device udp:", others_unnamed};
}

std::vector<std::string> explain_towards(const std::string& host) {
  const std::string device = device_towards(host);
  if (device == default_device) {
    return {fmt::format("device: {}, memory that both processes share, because {} is this host",
                        device, host),
            "not udp:, which is slower here: --device udp:", others_unnamed};
  }
  // Port 0 means that the server's address is one of this host.
  const bool of_this_host = device.ends_with(":0");
  return {fmt::format("device: {}, because {}", device,
                      of_this_host ? host + " is an address of this host"
                                   : "this host reaches " + host + " from there"),
          fmt::format("not {}, which reaches only processes of this host{}", default_device,
                      of_this_host ? ": leave the host out, which is faster" : ""),
          others_unnamed};
}

// Returns the NUMA node of a processor; empty if the kernel does not say it.
std::string node_of(int processor) {
  constexpr std::string_view node = "node";
  std::error_code ignored;
  const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", processor);
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(node)) return name.substr(node.size());
  }
  return {};
}

}  // namespace

std::vector<std::string> explain_device(const Options& options) {
  using Mode = Options::Mode;
  constexpr Mode modes[] = {Mode::main_job, Mode::test, Mode::group, Mode::registration};
  if (std::ranges::find(modes, options.mode) == std::end(modes)) return {};
  if (!options.device_from.empty()) {
    const std::string device = options.device.empty() ? device_towards(options.host)  //
                                                      : options.device;
    return {fmt::format("device: {}, from {}", device, options.device_from)};
  }
  return options.self ? explain_here(options) : explain_towards(options.host);
}

std::string processor_text(int processor) {
  if (processor < 0) return "any";
  std::error_code ignored;
  const std::string node = node_of(processor);
  const bool several = std::filesystem::exists("/sys/devices/system/node/node1", ignored);
  return several && !node.empty() ? fmt::format("{} (NUMA node {})", processor, node)
                                  : std::to_string(processor);
}

}  // namespace urma::apps::perf
