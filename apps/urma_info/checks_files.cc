// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <sstream>

#include "apps/urma_info/checks.h"

namespace urma::apps::info {
namespace {

// The default window takes 0.7M when it is created, and 0.9M more for each pair of devices that
// exchange packets. With less than the second size, only small segments fit beside them.
constexpr uint64_t least_shared = 2 * mebibyte;
constexpr uint64_t good_shared = 64 * mebibyte;

std::optional<struct stat> look(const Host& host, std::string_view path) {
  struct stat about {};
  if (lstat(host.at(path).c_str(), &about) != 0) return std::nullopt;
  return about;
}

bool usable_directory(const Host& host, const std::string& path) {
  const auto about = path.starts_with('/') ? look(host, path) : std::nullopt;
  return about && S_ISDIR(about->st_mode) && about->st_uid == host.uid &&
         host.may_write(host.at(path).string());
}

struct NamesDirectory {
  std::string path;
  bool ignored_environment = false;  // XDG_RUNTIME_DIR is set and cannot be used
};

// The library chooses the directory in the same way: see NameFiles.
NamesDirectory names_directory(const Host& host) {
  const auto chosen = host.environment.find("XDG_RUNTIME_DIR");
  const bool given = chosen != host.environment.end();
  if (given && usable_directory(host, chosen->second)) return {chosen->second + "/urma", false};
  const std::string run = "/run/user/" + std::to_string(host.uid);
  if (usable_directory(host, run)) return {run + "/urma", given};
  return {"/tmp/urma-" + std::to_string(host.uid), given};
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Finds files below the path whose processes have ended: a living process would hold its file.
// Drafts are held only from a moment after they were created, so young files are ignored.
void find_stale(const Host& host, const std::string& path, std::vector<std::string>& out) {
  constexpr time_t young_seconds = 60;
  for (const std::string& name : host.names(path)) {
    const std::string inside = path + "/" + name;
    const auto about = look(host, inside);
    if (!about) continue;
    if (S_ISDIR(about->st_mode)) find_stale(host, inside, out);
    const bool lock = name == ".lock";
    if (!S_ISREG(about->st_mode) || lock || std::time(nullptr) - about->st_mtime < young_seconds) {
      continue;
    }
    if (!host.held(host.at(inside).string())) out.push_back(inside);
  }
}

// Returns whether the latest mount at this directory is read-only.
bool is_mounted_read_only(const Host& host, const std::string& directory) {
  std::istringstream mounts(host.text("/proc/self/mounts").value_or(""));
  bool read_only = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string source, place, kind, options;
    words >> source >> place >> kind >> options;
    if (place == directory) read_only = options == "ro" || options.starts_with("ro,");
  }
  return read_only;
}

}  // namespace

Finding check_shared_memory(const Host& host) {
  const std::string path = host.at("/dev/shm").string();
  const auto space = host.space(path);
  if (!space) {
    return fix("/dev/shm does not exist: windows of shared memory are files there",
               "as root: mkdir -p /dev/shm && mount -t tmpfs -o mode=1777,size=1G tmpfs /dev/shm");
  }
  if (!host.may_write(path) && is_mounted_read_only(host, "/dev/shm")) {
    return fix("/dev/shm is mounted read-only: no window can be made there",
               "as root: mount -o remount,rw /dev/shm; or use a window on another file system: "
               "cxl:/another/path");
  }
  if (!host.may_write(path)) {
    return fix("/dev/shm cannot be written to by this user", "as root: chmod 1777 /dev/shm");
  }
  const std::string sizes =
      fmt::format("/dev/shm has {}M, {}M of them free", space->total_bytes / mebibyte,
                  space->free_bytes / mebibyte);
  const std::string larger =
      "as root: mount -o remount,size=1G /dev/shm; a container: docker run --shm-size=1g";
  if (space->free_bytes < least_shared) {
    return fix(sizes + ": no room for a window, which takes 1M, and 1M for each peer",
               "remove files that no process uses (ls -l /dev/shm), or " + larger);
  }
  if (space->free_bytes < good_shared) {
    return warn(sizes + ": room for small segments only, larger ones are not mapped", larger);
  }
  return ok(sizes);
}

Finding check_window_file(const Host& host) {
  const std::string path = "/dev/shm/urma-" + std::to_string(host.uid);
  const auto about = look(host, path);
  if (!about) return ok(path + " does not exist yet; the first process that opens cxl: makes it");
  if (!S_ISREG(about->st_mode)) {
    return fix(path + " is not a file", fmt::format("rm -r {}; it is made anew", path));
  }
  if (about->st_uid != host.uid) {
    return fix(path + " belongs to another user",
               fmt::format("as root: rm {0}; it is made anew. Or choose another path: "
                           "cxl:/dev/shm/NAME",
                           path));
  }
  return ok(fmt::format("{}, {}M, {}M of them taken", path,
                        static_cast<uint64_t>(about->st_size) / mebibyte,
                        static_cast<uint64_t>(about->st_blocks) * 512 / mebibyte));
}

Finding check_names(const Host& host) {
  const NamesDirectory names = names_directory(host);
  const auto about = look(host, names.path);
  if (about && (!S_ISDIR(about->st_mode) || about->st_uid != host.uid)) {
    return fix(
        names.path + " is not a directory of this user: no name can be published",
        fmt::format("as root: rm -r {}; or export XDG_RUNTIME_DIR=DIRECTORY, one of your own "
                    "with mode 0700, for all programs that are to find each other",
                    names.path));
  }
  if (about && (about->st_mode & 077) != 0) {
    return fix(names.path + " is open to other users: no name is published there",
               "chmod 700 " + names.path);
  }
  if (names.ignored_environment) {
    return warn(fmt::format("XDG_RUNTIME_DIR={} is not a directory of this user's that can be "
                            "written to; names are in {}",
                            host.environment.at("XDG_RUNTIME_DIR"), names.path),
                "unset XDG_RUNTIME_DIR, or make that directory: mkdir -m 700 \"$XDG_RUNTIME_DIR\"");
  }
  constexpr uint64_t least_for_names = 64 * 1024;
  const auto space = host.space(host.at(parent_of(names.path)).string());
  if (space && space->free_bytes < least_for_names) {
    return fix(
        fmt::format("{} is in a file system with {}K free: no name can be published", names.path,
                    space->free_bytes / 1024),
        fmt::format("remove files in {0} that no process uses (df {0})", parent_of(names.path)));
  }
  return ok(names.path +
            "; programs that choose another directory (XDG_RUNTIME_DIR) do not find "
            "these names");
}

Finding check_stale_files(const Host& host) {
  // flock(1) checks that no process has locked the file, and locks it while it is removed.
  constexpr const char* remove = "-type f ! -name .lock -mmin +1 -exec flock -n {} rm {} \\;";
  const std::string directory = names_directory(host).path;
  std::vector<std::string> stale;
  std::string cure;
  find_stale(host, directory, stale);
  if (!stale.empty()) cure = fmt::format("find {} {}", directory, remove);
  const size_t names = stale.size();
  for (const std::string& name : host.names("/dev/shm")) {
    const std::string path = "/dev/shm/" + name;
    if (name.starts_with("urma_perf.") && !host.held(host.at(path).string())) stale.push_back(path);
  }
  if (stale.size() > names) {
    cure += fmt::format("{}find /dev/shm -name 'urma_perf.*' {}", cure.empty() ? "" : " ", remove);
  }
  if (stale.empty()) return ok("none");
  return warn(fmt::format("{} of processes that have ended, like {}. They do no harm: they "
                          "are replaced when the name is published again",
                          stale.size() == 1 ? "1 file" : fmt::format("{} files", stale.size()),
                          stale.front()),
              cure);
}

Finding check_dax(const Host& host) {
  std::string mine, others;
  for (const std::string& name : host.names("/dev")) {
    if (!name.starts_with("dax")) continue;
    std::string& list = host.may_write(host.at("/dev/" + name).string()) ? mine : others;
    list += " /dev/" + name;
  }
  if (!others.empty()) {
    return warn("this user may not open" + others, "as root: chmod a+rw" + others);
  }
  return ok(mine.empty() ? "none here; windows lie in /dev/shm" : "cxl: may open" + mine);
}

}  // namespace urma::apps::info
