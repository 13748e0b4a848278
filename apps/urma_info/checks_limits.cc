// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/limits.h"

namespace urma::apps::info {
namespace {

// Returns how much memory a group uses that it could not free by dropping cached files.
uint64_t memory_used(const Host& host, const std::string& directory) {
  const auto of = [&](const char* file) { return host.number(directory + "/" + file); };
  const uint64_t all = of("memory.current").value_or(of("memory.usage_in_bytes").value_or(0));
  uint64_t cached = 0;
  for (const char* key : {"inactive_file ", "total_inactive_file "}) {
    if (const auto line = host.line(directory + "/memory.stat", key)) {
      cached = parse_number(*line).value_or(0);
    }
  }
  return all - std::min(all, cached);
}

// Returns how many processors' time a group may use. Returns nothing if it has no limit, or if no
// file contains it.
std::optional<double> quota(const Host& host, const std::string& directory) {
  if (const auto both = host.line(directory + "/cpu.max")) {
    const size_t blank = both->find(' ');
    if (both->starts_with("max") || blank == both->npos) return std::nullopt;
    const auto time = parse_number(*both);
    const auto period = parse_number(std::string_view(*both).substr(blank + 1));
    if (!time || !period || *period == 0) return std::nullopt;
    return static_cast<double>(*time) / static_cast<double>(*period);
  }
  // Without a limit the file contains -1, which is not a number here.
  const auto time = host.number(directory + "/cpu.cfs_quota_us");
  const auto period = host.number(directory + "/cpu.cfs_period_us");
  if (!time || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*period);
}

}  // namespace

Finding check_open_files(const Host& host) {
  constexpr uint64_t least = 64;  // a device has some 8, a published name one
  constexpr uint64_t good = 256;
  const auto limit = process_limit(host, "Max open files");
  if (!limit) return ok("the limit is unknown: /proc/self/limits does not have it");
  if (*limit == UINT64_MAX) return ok("unlimited");
  const std::string what = fmt::format("{} at most (ulimit -n)", *limit);
  const std::string why = what + ": a device opens about 8 files, a published name 1";
  if (*limit < least) return fix(why, "ulimit -n 1024");
  if (*limit < good) return warn(why, "ulimit -n 1024");
  return ok(what);
}

Finding check_processes(const Host& host) {
  constexpr uint64_t least = 8;
  constexpr uint64_t good = 64;
  if (const auto group = group_limit(host, "pids", "pids.max", "pids.max")) {
    const uint64_t now = host.number(group->directory + "/pids.current").value_or(0);
    const uint64_t left = group->limit - std::min(group->limit, now);
    const std::string what =
        fmt::format("{} more in this control group (pids.max {})", left, group->limit);
    const std::string cure = fmt::format(
        "a container: docker update --pids-limit=1024 CONTAINER; "
        "else as root: echo 1024 > {}/pids.max",
        group->directory);
    if (left < least) return fix(what + ": a device may not get its thread", cure);
    if (left < good) return warn(what, cure);
  }
  const auto limit = process_limit(host, "Max processes");
  if (limit && host.uid != 0 && *limit < good) {
    return warn(fmt::format("{} processes and threads for this user (ulimit -u)", *limit),
                "ulimit -u 4096");
  }
  return ok(limit && *limit != UINT64_MAX
                ? fmt::format("{} processes and threads for a user (ulimit -u)", *limit)
                : "not limited");
}

Finding check_container_memory(const Host& host) {
  const auto group = group_limit(host, "memory", "memory.max", "memory.limit_in_bytes");
  if (!group) return ok("not limited by a control group");
  const uint64_t used = memory_used(host, group->directory);
  const uint64_t left = group->limit - std::min(group->limit, used);
  const std::string what =
      fmt::format("{}M of {}M left in {}; shared memory counts for the group that touched it first",
                  left / mebibyte, group->limit / mebibyte, group->directory);
  const std::string cure = fmt::format(
      "a container: docker update --memory=2g --memory-swap=2g "
      "CONTAINER; else as root: raise the limit in {}",
      group->directory);
  if (left < 64 * mebibyte) return fix(what + ". A process that takes more is killed", cure);
  if (group->limit < 512 * mebibyte) return warn(what, cure);
  return ok(what);
}

Finding check_container_processors(const Host& host) {
  std::optional<double> least;
  std::string where;
  for (const std::string& directory : control_groups(host, "cpu")) {
    const auto one = quota(host, directory);
    if (!one || (least && *one >= *least)) continue;
    least = one;
    where = directory;
  }
  if (!least) return ok("not limited by a control group");
  const std::string what = fmt::format("the time of {:.2g} processors ({})", *least, where);
  const std::string cure =
      "a container: docker update --cpus=2 CONTAINER; or open devices with Threads::served and "
      "wait instead of polling";
  if (*least < 1) {
    return fix(what + ": a polling thread uses it up and is stopped for the rest of each period",
               cure);
  }
  if (*least < 2) return warn(what + ": two threads that poll use it up, and are stopped", cure);
  return ok(what);
}

}  // namespace urma::apps::info
