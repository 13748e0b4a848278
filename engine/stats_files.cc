// SPDX-License-Identifier: Apache-2.0
#include "engine/stats_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <tuple>

#include "base/above_standard.h"
#include "base/clock.h"
#include "base/file_limit.h"

namespace urma::engine {
namespace {

// Returns PID-NUMBER. The PID is for a quick check whether the process may exist. The 16 digits are
// unique, so that removing a stale file never removes a file of another device.
std::string file_name(uint64_t pid, uint64_t unique) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%llu-%016llx", static_cast<unsigned long long>(pid),
                static_cast<unsigned long long>(unique));
  return text.data();
}

std::optional<pid_t> pid_in(std::string_view name) {
  constexpr size_t digits = 16;
  const size_t dash = name.find('-');
  if (dash == name.npos || name.size() != dash + 1 + digits ||
      name.find_first_not_of("0123456789abcdef", dash + 1) != name.npos) {
    return std::nullopt;
  }
  pid_t pid = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + dash, pid);
  if (failure != std::errc{} || end != name.data() + dash || pid <= 0) return std::nullopt;
  return pid;
}

// Returns the content of a short file, or an empty string if the file cannot be read.
std::string contents(const char* path) {
  const OwnedDescriptor file(above_standard(::open(path, O_RDONLY | O_CLOEXEC)));
  std::string text(4096, '\0');
  const ssize_t got = file.get() < 0 ? -1 : ::read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

int64_t calendar_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(read_calendar()).count();
}

// Returns when this process was started, in seconds since 1970. The second field of /proc/self/stat
// is a name in parentheses that may contain anything.
int64_t started() {
  constexpr int fields_between = 19;
  const std::string stat = contents("/proc/self/stat");
  size_t at = stat.rfind(')');
  for (int i = 0; i <= fields_between && at != stat.npos; ++i) at = stat.find(' ', at + 1);
  if (at == stat.npos) return 0;
  const int64_t ticks = std::strtoll(stat.c_str() + at, nullptr, 10);
  return calendar_seconds() - (seconds_since_boot() - ticks / sysconf(_SC_CLK_TCK));
}

}  // namespace

ObservedDevice this_process() {
  ObservedDevice out;
  out.pid = static_cast<uint64_t>(getpid());
  out.process = program_invocation_short_name;
  out.process_started = started();
  out.opened = calendar_seconds();
  return out;
}

void StatsFile::write(const Statistics& statistics, Time moment, std::span<const uint64_t> more) {
  write(page_.next(statistics, moment, more));
}

void StatsFile::write_channels(std::span<const transport::ChannelView> rows, uint32_t more) {
  write(page_.next_channels(rows, more));
}

void StatsFile::write_objects(const ObjectViews& objects) {
  if (std::ranges::equal(objects.shown(), written_.shown()) &&
      objects.more_jetties == written_.more_jetties &&
      objects.more_segments == written_.more_segments && objects.more_jfcs == written_.more_jfcs) {
    return;
  }
  written_ = objects;
  write(page_.next_objects(objects));
}

void StatsFile::write(const StatsPage::Write& next) {
  // A limit that was set after the file was made (ulimit -f) applies to writes beyond it.
  if (!file_may_have(next.offset + next.bytes.size())) return;
  [[maybe_unused]] const ssize_t written = pwrite(
      file_.descriptor(), next.bytes.data(), next.bytes.size(), static_cast<off_t>(next.offset));
}

StatsFiles StatsFiles::of_this_user() {
  return StatsFiles("/dev/shm/urma-devices-" + std::to_string(geteuid()));
}

StatsFiles::StatsFiles(std::string directory)
    : directory_{.path = std::move(directory),
                 .what = "devices",
                 .cure = "have its owner, or root, remove it"} {}

Result<StatsFile> StatsFiles::publish(const ObservedDevice& facts, uint64_t unique) const {
  if (auto made = directory_.make(); !made) return made.error();
  sweep();
  // The file gets a name only when it is complete and locked, so no process finds it before.
  OwnedDescriptor file(
      above_standard(::open(directory_.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)));
  if (file.get() < 0) return directory_.failure("making a file in " + directory_.path, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return directory_.failure("locking a file in " + directory_.path, errno);
  }
  StatsPage page(facts);
  const auto bytes = page.bytes();
  if (!file_may_have(bytes.size())) {
    return directory_.failure("writing a file in " + directory_.path, EFBIG);
  }
  const ssize_t written = pwrite(file.get(), bytes.data(), bytes.size(), 0);
  if (written != static_cast<ssize_t>(bytes.size())) {
    return directory_.failure("writing a file in " + directory_.path, written < 0 ? errno : ENOSPC);
  }
  const std::string path = directory_.path + "/" + file_name(facts.pid, unique);
  const std::string unnamed = "/proc/self/fd/" + std::to_string(file.get());
  if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return directory_.failure("naming " + path, errno);
  }
  return StatsFile(HeldFile(std::move(file), path), std::move(page));
}

// Opens only files whose PID does not exist here, so that it is quick if many devices are open.
// Such a process may still run in another container, which has its own PIDs.
void StatsFiles::sweep() const {
  for (const std::string& name : entries_of(directory_.path)) {
    const auto pid = pid_in(name);
    if (!pid || kill(*pid, 0) == 0 || errno != ESRCH) continue;
    const std::string path = directory_.path + "/" + name;
    const OwnedDescriptor file = open_to_look(path);
    if (file.get() >= 0 && !held(file)) unlink(path.c_str());
  }
}

Result<Observed> StatsFiles::look() const {
  if (auto trusted = directory_.trust(); !trusted) return trusted.error();
  Observed out;
  for (const std::string& name : entries_of(directory_.path)) {
    const std::string path = directory_.path + "/" + name;
    const OwnedDescriptor file = open_to_look(path);
    if (!add_page(file, path, geteuid(), out)) unlink(path.c_str());
  }
  sort_devices(out);
  return out;
}

void sort_devices(Observed& seen) {
  std::sort(seen.devices.begin(), seen.devices.end(),
            [](const ObservedDevice& a, const ObservedDevice& b) {
              return std::tie(a.process_started, a.pid, a.opened, a.device, a.endpoint) <
                     std::tie(b.process_started, b.pid, b.opened, b.device, b.endpoint);
            });
}

bool add_page(const OwnedDescriptor& file, const std::string& path, uint32_t owner, Observed& out) {
  // Any text can be the name of a file.
  const auto skip = [&](std::string_view why) {
    std::string where = path;
    for (char& c : where) {
      if (c < ' ' || c > '~') c = '?';
    }
    out.skipped.push_back(where + " " + std::string(why));
    ++out.unread;
    return true;
  };
  if (file.get() < 0) {
    if (errno == ENOENT) return true;  // closed meanwhile
    return skip(std::string("cannot be opened: ") + std::strerror(errno) + ". Fix: remove it");
  }
  struct stat info {};
  const bool regular = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (!pid_in(name) || !regular || info.st_uid != owner) {
    return skip("is not a file with a device's counters. Fix: remove it");
  }
  if (!held(file)) return false;
  // Both slots appear incomplete only to a reader that was stopped while it read.
  constexpr int attempts = 3;
  std::vector<std::byte> bytes(StatsPage::most_bytes);
  for (int left = attempts; left > 0; --left) {
    const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) return skip(std::string("cannot be read: ") + std::strerror(errno));
    auto page = StatsPage::parse(std::span(bytes).first(static_cast<size_t>(got)));
    if (page) {
      page->uid = owner;
      out.devices.push_back(std::move(*page));
      return true;
    }
    if (page.status() != Status::would_block || left == 1) return skip(page.error().message);
  }
  return true;
}

}  // namespace urma::engine
