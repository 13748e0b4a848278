// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "apps/urma_info/checks.h"

namespace urma::apps::info {
namespace {

// Returns the numbers in a list like "0-3,8", up to the first word that is not a number.
std::vector<unsigned> numbers_in(std::string_view list) {
  constexpr uint64_t most = 1 << 16;
  std::vector<unsigned> out;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == part.npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first >= most || *last >= most) break;
    for (uint64_t i = *first; i <= *last; ++i) out.push_back(static_cast<unsigned>(i));
  }
  return out;
}

}  // namespace

Finding check_processors(const Host& host) {
  const auto allowed =
      numbers_in(host.line("/proc/self/status", "Cpus_allowed_list:").value_or(""));
  if (allowed.empty())
    return ok("unknown: /proc/self/status does not list the processors that may be used");
  const auto online = numbers_in(host.line("/sys/devices/system/cpu/online").value_or(""));
  std::set<std::string> cores;
  for (const unsigned one : allowed) {
    const auto siblings =
        host.line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", one));
    cores.insert(siblings.value_or(std::to_string(one)));
  }
  const size_t there = std::max(online.size(), allowed.size());
  const std::string what = fmt::format("{} of {} may be used, on {} core{}", allowed.size(), there,
                                       cores.size(), cores.size() == 1 ? "" : "s");
  const std::string several =
      there > allowed.size()
          ? fmt::format("taskset -pc 0-{} $$; a container: docker run without --cpuset-cpus",
                        there - 1)
          : "a machine with several; on this one wait instead of polling (Threads::served)";
  if (allowed.size() == 1) {
    return warn(what + ": two programs that poll take turns of milliseconds", several);
  }
  if (cores.size() == 1) {
    return warn(what + ": two programs that poll share the units of this core, and slow each other",
                several);
  }
  return ok(what);
}

Finding check_clock(const Host& host) {
  constexpr double fast_ns = 200;  // a system call takes longer
  constexpr const char* folder = "/sys/devices/system/clocksource/clocksource0/";
  const std::string source =
      host.line(std::string(folder) + "current_clocksource").value_or("unknown");
  const std::string what = fmt::format("{}, read in {:.0f} ns", source, host.clock_ns);
  if (host.clock_ns < fast_ns) return ok(what);
  const std::string others = host.line(std::string(folder) + "available_clocksource").value_or("");
  for (const char* faster : {"tsc", "kvm-clock", "arch_sys_counter"}) {
    if (source == faster ||
        (" " + others + " ").find(std::string(" ") + faster + " ") == others.npos)
      continue;
    return warn(what + ": each reading of the clock is a system call",
                fmt::format("as root: echo {} > {}current_clocksource", faster, folder));
  }
  return warn(what +
                  ": each reading of the clock is a system call, and this machine has no faster "
                  "one (or is busy: check again)",
              "use another kind of machine; for a virtual one, ask for a stable TSC");
}

}  // namespace urma::apps::info
