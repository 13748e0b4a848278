// SPDX-License-Identifier: Apache-2.0
#include "engine/all_users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/above_standard.h"
#include "engine/stats_files.h"

namespace urma::engine {
namespace {

constexpr size_t most_users = 256;  // that have a page
constexpr size_t most_directories = 4096;
constexpr size_t most_pages = 512;   // of one user
constexpr size_t most_files = 4096;  // of one user, that are counted
constexpr std::string_view prefix = "urma-devices-";

// Returns the user of a directory with this name.
std::optional<uint32_t> user_in(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  uint32_t uid = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), uid);
  const bool whole = failure == std::errc{} && end == digits.data() + digits.size();
  // Other spellings of a number, as 007, are not names that the library makes.
  return whole && std::to_string(uid) == digits ? std::optional(uid) : std::nullopt;
}

// Opens a directory, and not what a link names. The result is empty unless the directory belongs to
// this user and no other user may write to it. Any user can make such a directory, with any name.
OwnedDescriptor directory_of(const std::string& path, uint32_t uid) {
  OwnedDescriptor directory(
      above_standard(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  struct stat info {};
  const bool theirs = directory.get() >= 0 && fstat(directory.get(), &info) == 0 &&
                      info.st_uid == uid && (info.st_mode & 077) == 0;
  return theirs ? std::move(directory) : OwnedDescriptor();
}

// Reads the pages in a directory of another user. Each is opened by its name in this directory, so
// replacing the directory meanwhile leads nowhere else. O_NONBLOCK: it may be a pipe. Stale pages
// stay: their user's next device removes them. Returns whether it found a file.
bool look_at(const OwnedDescriptor& directory, const std::string& path, uint32_t uid,
             Observed& out) {
  const std::vector<std::string> names = entries_in(directory, most_files);
  for (size_t i = 0; i < std::min(names.size(), most_pages); ++i) {
    const OwnedDescriptor file(above_standard(::openat(
        directory.get(), names[i].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)));
    (void)add_page(file, path + "/" + names[i], uid, out);
  }
  if (names.size() > most_pages) {
    out.skipped.push_back(path +
                          " has more files than the 512 that are read. Fix: urma_stat as "
                          "that user (sudo -u) shows all of them");
    out.unread += names.size() - most_pages;
  }
  return !names.empty();
}

// The users that have a directory, except this one, and their numbers. The lowest number is first:
// those of user namespaces, of which one user may have 65536, are above those of accounts.
std::vector<uint32_t> other_users(const std::string& parent) {
  std::vector<uint32_t> out;
  for (const std::string& name : entries_of(parent)) {
    const std::optional<uint32_t> uid = user_in(name);
    if (uid && *uid != geteuid()) out.push_back(*uid);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Looks at the directories of all other users. Empty ones do not count towards the limit, because
// devices that were closed leave them.
Observed look_at_others(const std::string& parent) {
  Observed out;
  size_t users = 0;
  size_t tried = 0;
  for (const uint32_t uid : other_users(parent)) {
    const std::string path = parent + "/" + std::string(prefix) + std::to_string(uid);
    const OwnedDescriptor directory = directory_of(path, uid);
    if (directory.get() < 0) continue;  // also for every other user's, unless this one is root
    if (users < most_users && tried < most_directories) {
      ++tried;
      users += look_at(directory, path, uid, out) ? 1 : 0;
      continue;
    }
    out.skipped.push_back(parent +
                          " has directories of more users than the 256 that are read. "
                          "Fix: urma_stat as one of them (sudo -u) shows its devices");
    ++out.unread;
    break;
  }
  return out;
}

// Each user can make any number of unreadable pages, so there is one sentence about all of them.
void add_summary(const Observed& others, Observed& out) {
  out.unread += others.unread;
  if (others.skipped.empty()) return;
  if (others.unread == 1) {
    out.skipped.push_back(others.skipped.front());
    return;
  }
  out.skipped.push_back(std::to_string(others.unread) +
                        " pages of other users are not read. The first: " + others.skipped.front());
}

}  // namespace

Result<Observed> look_at_all_users(const std::string& parent) {
  Result<Observed> seen =
      StatsFiles(parent + "/" + std::string(prefix) + std::to_string(geteuid())).look();
  if (!seen) return seen;
  Observed others = look_at_others(parent);
  std::move(others.devices.begin(), others.devices.end(), std::back_inserter(seen->devices));
  add_summary(others, *seen);
  sort_devices(*seen);
  return seen;
}

}  // namespace urma::engine
