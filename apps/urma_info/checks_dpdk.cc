// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/split_error.h"

namespace urma::apps::info {
namespace {

// Two devices of one process, so that nothing outside of it is touched.
constexpr const char* harmless_device = "dpdk:net_ring0,pair=doctor?ip=10.9.0.1/24";
// As the driver wants them: fewer may not hold the buffers of one port.
constexpr uint64_t enough_huge_mib = 256;

struct Nic {
  std::string address;  // 0000:3b:00.0
  std::string node;     // the NUMA node
};

// Returns the NICs that belong to programs.
std::vector<Nic> nics(const Host& host) {
  std::vector<Nic> out;
  for (const char* driver : {"vfio-pci", "igb_uio", "uio_pci_generic"}) {
    for (const std::string& name : host.names(fmt::format("/sys/bus/pci/drivers/{}", driver))) {
      if (std::ranges::count(name, ':') != 2) continue;
      const std::string node = fmt::format("/sys/bus/pci/devices/{}/numa_node", name);
      out.push_back({name, host.line(node).value_or("unknown")});
    }
  }
  return out;
}

// Returns the free bytes of huge pages of all sizes, in MiB.
uint64_t free_huge_mib(const Host& host) {
  constexpr std::string_view folder = "/sys/kernel/mm/hugepages";
  constexpr std::string_view begin = "hugepages-";
  uint64_t kib = 0;
  for (const std::string& name : host.names(folder)) {
    if (!name.starts_with(begin) || !name.ends_with("kB")) continue;
    const std::string digits = name.substr(begin.size(), name.size() - begin.size() - 2);
    const uint64_t pages =
        host.number(fmt::format("{}/{}/free_hugepages", folder, name)).value_or(0);
    kib += pages * parse_number(digits).value_or(0);
  }
  return kib / 1024;
}

// Returns the first file of VFIO that this user may not open, or an empty text.
std::string closed_file(const Host& host) {
  for (const std::string& name : host.names("/dev/vfio")) {
    const std::string path = "/dev/vfio/" + name;
    if (!host.may_write(host.at(path).string())) return path;
  }
  return {};
}

}  // namespace

Finding check_dpdk(const Host& host) {
  const Result<void> opened = host.open(harmless_device);
  if (!opened) {
    const SplitError error = split_error(opened.error().message);
    // It is optional, so a machine without it is as it should be.
    if (opened.status() == Status::unsupported) {
      return ok(fmt::format("{} (if dpdk: devices are wanted: {})", error.what, error.fix));
    }
    return {Level::warn, "does not open: " + error.what, error.fix};
  }
  const std::vector<Nic> found = nics(host);
  if (found.empty()) return ok("opens; no NIC is bound to a program, virtual ports need none");
  std::string list;
  for (const Nic& nic : found) {
    list += fmt::format("{}{} (NUMA node {})", list.empty() ? "" : ", ", nic.address, nic.node);
  }
  const uint64_t free = free_huge_mib(host);
  if (free < enough_huge_mib) {
    return fix(fmt::format("NICs of programs: {}; {}M of huge pages are free", list, free),
               "as root: sysctl vm.nr_hugepages=1024");
  }
  if (const std::string path = closed_file(host); !path.empty()) {
    return fix(fmt::format("NICs of programs: {}; this user may not open {}", list, path),
               fmt::format("as root: chown {} {}", host.uid, path));
  }
  return ok(fmt::format("opens; NICs of programs: {}; {}M of huge pages are free", list, free));
}

}  // namespace urma::apps::info
