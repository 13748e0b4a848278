// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/host.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "apps/urma_info/look.h"
#include "base/loopback.h"

namespace urma::apps::info {
namespace {

constexpr int udp_segment = 103;  // older system headers do not define these names
constexpr int udp_gro = 104;

std::optional<Host::Space> space_at(const std::string& path) {
  struct statvfs about {};
  if (statvfs(path.c_str(), &about) != 0) return std::nullopt;
  return Host::Space{.total_bytes = uint64_t{about.f_blocks} * about.f_frsize,
                     .free_bytes = uint64_t{about.f_bavail} * about.f_frsize};
}

// Tries a shared lock and releases it immediately, as a process does that looks for a name.
bool is_held(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return errno != ENOENT;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return held;
}

bool takes_option(int name) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const int zero = 0;
  const bool taken = setsockopt(socket, IPPROTO_UDP, name, &zero, sizeof zero) == 0;
  close(socket);
  return taken;
}

bool has_file_locks() {
  const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  const bool known = file >= 0 && (fcntl(file, F_OFD_GETLK, &lock) == 0 || errno != EINVAL);
  if (file >= 0) close(file);
  return known;
}

bool has_timers() {
  const int event = eventfd(0, EFD_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (event >= 0) close(event);
  if (timer >= 0) close(timer);
  return event >= 0 && timer >= 0;
}

double time_of_clock() {
  constexpr int turns = 1000;
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begun = std::chrono::steady_clock::now();
    auto last = begun;
    for (int i = 0; i < turns; ++i) last = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(last - begun).count() / turns);
  }
  return best;
}

}  // namespace

bool Host::has(std::string_view path) const {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(at(path), ignored));
}

std::optional<std::string> Host::text(std::string_view path) const {
  std::ifstream file(at(path));
  if (!file) return std::nullopt;
  std::string out{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return out;
}

std::optional<std::string> Host::line(std::string_view path, std::string_view begin) const {
  std::ifstream file(at(path));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(begin)) continue;
    const size_t rest = line.find_first_not_of(" \t", begin.size());
    return rest == line.npos ? "" : line.substr(rest);
  }
  return std::nullopt;
}

std::optional<uint64_t> Host::number(std::string_view path) const {
  const auto text = line(path);
  return text ? parse_number(*text) : std::nullopt;
}

std::vector<std::string> Host::names(std::string_view path) const {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(at(path), failed)) {
    out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  if (text.starts_with("max") || text.starts_with("unlimited")) return UINT64_MAX;
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

Host this_host() {
  Host host;
  host.uid = geteuid();
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR")) {
    host.environment["XDG_RUNTIME_DIR"] = runtime;
  }
  host.space = space_at;
  host.may_write = [](const std::string& path) {
    return faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
  };
  host.held = is_held;
  host.open = [](const std::string& device) -> Result<void> {
    Look look(device);
    const Result<Device>& opened = look.device();
    if (!opened) return opened.error();
    return {};
  };
  host.clock_ns = time_of_clock();
  host.loopback_down = loopback_is_down();
  uint32_t word = 0;
  host.kernel = {.segmentation = takes_option(udp_segment),
                 .coalescing = takes_option(udp_gro),
                 .file_locks = has_file_locks(),
                 .futex = syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) >= 0,
                 .timers = has_timers()};
  return host;
}

}  // namespace urma::apps::info
