#include <fmt/format.h>

#include <algorithm>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/split_error.h"

namespace urma::apps::info {
namespace {

// Two devices of one process, so that nothing outside of it is touched.
constexpr const char* harmless_device = "dpdk:net_ring0,pair=doctor?ip=10.9.0.1/24";
// As the driver wants them: fewer do not hold the buffers of one port.
constexpr uint64_t enough_huge_pages = 64;

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
  const uint64_t free =
      host.number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").value_or(0);
  if (free < enough_huge_pages) {
    return fix(fmt::format("NICs of programs: {}; {} huge pages of 2M are free", list, free),
               "as root: sysctl vm.nr_hugepages=1024");
  }
  if (const std::string path = closed_file(host); !path.empty()) {
    return fix(fmt::format("NICs of programs: {}; this user may not open {}", list, path),
               fmt::format("as root: chown {} {}", host.uid, path));
  }
  return ok(fmt::format("opens; NICs of programs: {}; {} huge pages of 2M are free", list, free));
}

}  // namespace urma::apps::info
