// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "apps/common/program.h"
#include "apps/urma_perf/messages.h"

namespace urma::apps::perf {
namespace {

std::string first_line(const char* file, std::string otherwise) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? line : std::move(otherwise);
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  uname(&name);
  return fmt::format("{} {} {}", name.sysname, name.release, name.version);
}

// Returns the choice in brackets, as in "always [madvise] never".
std::string chosen(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return line;
  return line.substr(open + 1, close - open - 1);
}

// Returns the network interfaces that are up: by name, their MTU in bytes, rate in Mbit/s (0 if the
// system does not know it) and driver.
nlohmann::json interfaces() {
  nlohmann::json out = nlohmann::json::array();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", ignored)) {
    const auto line = [&](const char* name, const char* otherwise) {
      return first_line((entry.path() / name).c_str(), otherwise);
    };
    if (line("operstate", "down") == "down") continue;
    const auto driver = std::filesystem::read_symlink(entry.path() / "device/driver", ignored);
    out.push_back({{"name", entry.path().filename().string()},
                   {"mtu_bytes", std::atoi(line("mtu", "0").c_str())},
                   {"mbit_per_second", std::max(0, std::atoi(line("speed", "0").c_str()))},
                   {"driver", driver.empty() ? "none" : driver.filename().string()}});
  }
  return out;
}

}  // namespace

std::string_view commit() { return URMA_COMMIT; }

nlohmann::json environment(const std::vector<std::string>& command) {
  return {
      {"kernel", kernel()},
      {"cpu_model", cpu_model()},
      {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
      {"governor",
       first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "none visible")},
      {"huge_pages", chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled", "unknown"))},
      {"autogroup", first_line("/proc/sys/kernel/sched_autogroup_enabled", "unknown")},
      {"rmem_max", first_line("/proc/sys/net/core/rmem_max", "unknown")},
      {"interfaces", interfaces()},
      {"compiler", fmt::format("g++ {}", __VERSION__)},
      {"library_version", library_version()},
      {"commit", commit()},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"command", fmt::format("{}", fmt::join(command, " "))},
  };
}

}  // namespace urma::apps::perf
