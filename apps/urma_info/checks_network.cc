// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "apps/urma_info/checks.h"

namespace urma::apps::info {
namespace {

// The bytes of a packet with the smallest payload (1024), and the headers of UB, UDP and IP.
constexpr uint64_t least_mtu = 1024 + 144;

uint64_t hex_of(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

bool may_exceed_buffers(const Host& host) {
  constexpr unsigned net_admin = 12;
  return hex_of(host.line("/proc/self/status", "CapEff:").value_or("")) >> net_admin & 1;
}

}  // namespace

Finding check_interfaces(const Host& host) {
  if (host.loopback_down) {
    return fix("lo is down: through udp: no process of this host reaches another",
               "as root: ip link set dev lo up");
  }
  std::string seen, small;
  for (const std::string& name : host.names("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    const bool up = (hex_of(host.line(folder + "/flags").value_or("")) & 1) != 0;
    const auto mtu = host.number(folder + "/mtu");
    if (!up || !mtu) continue;
    seen += fmt::format("{}{} {}", seen.empty() ? "" : ", ", name, *mtu);
    if (*mtu < least_mtu) small = name;
  }
  if (seen.empty()) {
    return warn("no interface is up: udp: reaches no peer",
                "as root: ip link set dev lo up; see: ip addr");
  }
  const std::string what = "MTU: " + seen;
  if (!small.empty()) {
    return fix(
        fmt::format("{}. The MTU of {} is too small for a packet, which has {} bytes", what, small,
                    least_mtu),
        fmt::format("as root: ip link set dev {} mtu 1500; or use another interface", small));
  }
  return ok(what);
}

Finding check_socket_buffers(const Host& host) {
  constexpr uint64_t wanted = 4 << 20;  // udp.rcvbuf
  const auto receive = host.number("/proc/sys/net/core/rmem_max");
  const auto send = host.number("/proc/sys/net/core/wmem_max");
  if (!receive || !send) {
    return ok("the limits are unknown; urma_info --config udp: prints what a socket gets");
  }
  const std::string what =
      fmt::format("net.core.rmem_max {}K, wmem_max {}K", *receive >> 10, *send >> 10);
  if (*receive >= wanted && *send >= wanted) return ok(what);
  if (may_exceed_buffers(host)) return ok(what + "; this process may exceed them (CAP_NET_ADMIN)");
  return warn(
      fmt::format("{}: udp: asks for {}M; bursts that are larger than the buffer are lost "
                  "and sent again",
                  what, wanted >> 20),
      fmt::format("as root: sysctl -w net.core.rmem_max={0} net.core.wmem_max={0}", wanted));
}

Finding check_kernel(const Host& host) {
  const std::string release = host.line("/proc/sys/kernel/osrelease").value_or("unknown");
  const Host::Kernel& kernel = host.kernel;
  std::string missing;
  const auto need = [&](bool has, const char* what) {
    if (!has) missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  need(kernel.futex, "futex");
  need(kernel.timers, "eventfd and timerfd");
  need(kernel.file_locks, "file locks that belong to an opening (F_OFD_SETLK)");
  if (!missing.empty()) {
    return fix(fmt::format("{} lacks, or a sandbox forbids: {}", release, missing),
               "use Linux 5.4 or later, and a sandbox (seccomp) that allows these calls");
  }
  need(kernel.segmentation, "UDP GSO");
  need(kernel.coalescing, "UDP GRO");
  if (!missing.empty()) {
    return warn(
        fmt::format("{} lacks {}: udp: needs a system call for each packet", release, missing),
        "use Linux 5.4 or later");
  }
  return ok(release + " has UDP GSO and GRO, futex, eventfd, timerfd, OFD locks");
}

}  // namespace urma::apps::info
