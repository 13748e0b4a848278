// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/limits.h"

#include <algorithm>

namespace urma::apps::info {
namespace {

// Version 1 of control groups writes "no limit" as a number near 2^63.
constexpr uint64_t as_good_as_none = uint64_t{1} << 60;

// A line of /proc/self/cgroup: ID:CONTROLLERS:PATH.
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> memberships(const Host& host) {
  std::vector<Membership> out;
  const std::string text = host.text("/proc/self/cgroup").value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == line.npos ? first : first + 1);
    if (second == line.npos) continue;
    out.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return out;
}

bool among(std::string_view word, const std::string& list) {
  return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// Adds a group and its parents, as far as they are visible: inside a container the path may not
// exist.
void add_groups(const Host& host, const std::string& mount, std::string path,
                std::vector<std::string>& out) {
  while (!path.empty() && path != "/") {
    if (host.has(mount + path)) out.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  if (host.has(mount)) out.push_back(mount);
}

}  // namespace

std::optional<uint64_t> process_limit(const Host& host, std::string_view name) {
  const auto line = host.line("/proc/self/limits", name);
  return line ? parse_number(*line) : std::nullopt;
}

std::vector<std::string> control_groups(const Host& host, std::string_view controller) {
  std::vector<std::string> out;
  for (const Membership& one : memberships(host)) {
    if (one.controllers.empty()) {
      add_groups(host, "/sys/fs/cgroup", one.path, out);
    } else if (among(controller, one.controllers)) {
      const std::string together = "/sys/fs/cgroup/" + one.controllers;
      const std::string alone = "/sys/fs/cgroup/" + std::string(controller);
      add_groups(host, host.has(together) ? together : alone, one.path, out);
    }
  }
  return out;
}

std::optional<GroupLimit> group_limit(const Host& host, std::string_view controller,
                                      std::string_view two, std::string_view one) {
  std::optional<GroupLimit> least;
  for (const std::string& directory : control_groups(host, controller)) {
    for (const std::string_view file : {two, one}) {
      const auto limit = host.number(directory + "/" + std::string(file));
      if (!limit || *limit >= as_good_as_none) continue;
      if (!least || *limit < least->limit) least = GroupLimit{directory, *limit};
    }
  }
  return least;
}

}  // namespace urma::apps::info
