// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/limits.h"

namespace urma::apps::info {
namespace {

// Returns the choice in brackets, as in "always [madvise] never".
std::string chosen(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']', open);
  if (open == line.npos || close == line.npos) return line;
  return line.substr(open + 1, close - open - 1);
}

// Returns the options with which /dev/shm is mounted.
std::string shm_options(const Host& host) {
  const std::string mounts = host.text("/proc/self/mounts").value_or("");
  const size_t at = mounts.find(" /dev/shm tmpfs ");
  if (at == mounts.npos) return {};
  return mounts.substr(at, mounts.find('\n', at) - at);
}

}  // namespace

Finding check_huge_pages(const Host& host) {
  constexpr const char* file = "/sys/kernel/mm/transparent_hugepage/enabled";
  const auto enabled = host.line(file);
  if (!enabled) {
    return ok("this kernel has no transparent huge pages; large private segments have pages of 4K");
  }
  const std::string choice = chosen(*enabled);
  if (choice == "never") {
    return warn("transparent huge pages are off: large private segments have pages of 4K",
                fmt::format("as root: echo madvise > {}", file));
  }
  const std::string options = shm_options(host);
  const bool window = options.find("huge=always") != options.npos ||
                      options.find("huge=within_size") != options.npos;
  const uint64_t reserved = host.number("/proc/sys/vm/nr_hugepages").value_or(0);
  return ok(fmt::format("transparent ones: {}; {}; {} reserved for hugetlbfs", choice,
                        window ? "windows in /dev/shm have them"
                               : "windows in /dev/shm have pages of 4K (as root, for larger ones: "
                                 "mount -o remount,huge=within_size /dev/shm)",
                        reserved));
}

Finding check_locked_memory(const Host& host) {
  const auto limit = process_limit(host, "Max locked memory");
  // A driver that pins memory would report that itself; no driver of this version pins memory.
  const std::string nothing = "nothing is pinned by the drivers of this version";
  if (!limit) return ok(nothing);
  if (*limit == UINT64_MAX) return ok("unlimited; " + nothing);
  return ok(fmt::format("{}K (ulimit -l); {}", *limit >> 10, nothing));
}

Finding check_address_space(const Host& host) {
  // Tables reserve their whole address space and use it as needed; the default window alone maps
  // 1G.
  constexpr uint64_t least = uint64_t{4} << 30;
  const auto limit = process_limit(host, "Max address space");
  if (limit && *limit < least) {
    return fix(fmt::format("{}M (ulimit -v): a device reserves more, of which it uses little",
                           *limit >> 20),
               "ulimit -v unlimited");
  }
  if (host.number("/proc/sys/vm/overcommit_memory") == 2) {
    return warn(
        "the kernel counts what is reserved as if it were used "
        "(vm.overcommit_memory=2): opening a device may find too little",
        "as root: sysctl -w vm.overcommit_memory=0; or open devices with smaller Limits");
  }
  return ok("not limited");
}

}  // namespace urma::apps::info
