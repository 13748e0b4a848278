// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/capi/devices.h"
#include "apps/capi/log.h"
#include "apps/capi/program.h"
#include "apps/common/near_names.h"
#include "apps/common/output.h"
#include "apps/urma_admin/device_text.h"
#include "apps/urma_admin/json.h"
#include "apps/urma_admin/options.h"
#include "apps/urma_admin/processes.h"
#include "apps/urma_admin/resource_text.h"
#include "apps/urma_admin/topology_text.h"

namespace urma::apps::admin {
namespace {

using Listed = std::vector<capi::ListedDevice>;

// Leaves only the device that the user named.
void choose(const std::string& name, Listed& devices) {
  if (name.empty()) return;
  const auto found = std::ranges::find(devices, name, &capi::ListedDevice::name);
  if (found != devices.end()) {
    devices = {std::move(*found)};
    return;
  }
  std::vector<std::string> names;
  for (const capi::ListedDevice& one : devices) names.push_back(one.name);
  const std::string near = near_names(std::string_view(name).substr(0, 60), names);
  throw Failure(Exit::error,
                fmt::format("there is no device \"{}\"{}. Fix: urma_admin show lists "
                            "the devices, and URMA_DEVICES names others",
                            name, near.empty() ? "" : "; perhaps " + near + " is meant"));
}

// Says what the output lacks, for people.
void complain(const std::vector<std::string>& sentences) {
  for (const std::string& one : sentences) print_error(printable("urma_admin: " + one));
}

std::string peers_of(const Listed& devices) {
  const Pages pages = read_pages();
  complain(pages.skipped);
  for (const capi::ListedDevice& one : devices) {
    complain(left_out(opened_at(one, pages), Resource::tp));
  }
  return topology_text(devices, pages);
}

std::string text_of(const Options& options, const Listed& devices) {
  if (options.topology) return peers_of(devices);
  if (!options.resource) {
    if (!options.whole) return device_table(devices);
    std::string out;
    for (const capi::ListedDevice& one : devices) out += whole_text(one);
    return out;
  }
  const Pages pages = read_pages();
  const auto opened = opened_at(devices[0], pages);
  complain(pages.skipped);
  complain(not_shown(opened, *options.resource));
  if (options.id) complain(left_out(opened, *options.resource));
  return resource_text(devices[0].name, opened, *options.resource, options.id);
}

Exit run(const Options& options) {
  capi::keep_log();
  urma_init(nullptr);
  Listed devices = capi::list_devices();
  choose(options.device, devices);
  if (options.json) {
    print_json(to_json(devices, read_pages()));
    return Exit::ok;
  }
  for (const capi::ListedDevice& one : devices) {
    if (!one.error.empty()) complain({one.name + ": " + one.error});
  }
  print(text_of(options, devices));
  return Exit::ok;
}

}  // namespace
}  // namespace urma::apps::admin

int main(int count, char** arguments) {
  namespace program = urma::apps::admin;
  return urma::apps::capi::run_program<program::Options>({.name = "urma_admin",
                                                          .version = {},
                                                          .help = program::help,
                                                          .parse = program::parse_options,
                                                          .run = program::run},
                                                         count, arguments);
}
