// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/pmd.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/above_standard.h"

namespace urma::drivers::dpdk {
namespace {

using Heals = Pmd::Heals;
using Reads = Pmd::Reads;

constexpr uint32_t frame_overhead = ethernet_bytes + vlan_tag_bytes + 4;
// net_af_packet has slots of 2048 bytes, with a header of its own in front of the frame, or these.
constexpr uint32_t most_in_small_slot = 2000;
constexpr uint32_t large_slot_bytes = 16384;

// The order matters: the first whose name begins the port's name.
constexpr Pmd pmds[] = {
    {.name = "net_memif",
     .any_mtu = true,
     .takes_mac = true,
     .connects_by_interrupts = true,
     .reads = Reads::at_once},
    // Its peer maps the memory of DPDK, and no other. With interrupts, EAL's interrupt thread
    // watches the connection.
    {.name = "net_virtio_user",
     .heals = Heals::reopen,
     .most_ip_mtu = 9600,
     .takes_mac = true,
     .connects_by_interrupts = true,
     .interrupts = true,
     .queues_argument = "queues"},
    {.name = "net_vhost",
     .any_mtu = true,
     .own_mac = false,
     .interrupts = true,
     .counts_connections = true,
     .queues_argument = "queues",
     .reads = Reads::at_once},
    {.name = "net_af_packet",
     .any_mtu = true,
     .queues_argument = "qpairs",
     .reads = Reads::at_once},
    // A buffer has to fit into a page. Chains arrive as garbage.
    {.name = "net_af_xdp",
     .any_mtu = true,
     .most_ip_mtu = 3498,
     .queues_argument = "queue_count",
     .dense = true},
    {.name = "net_ring", .any_mtu = true, .own_mac = false, .reads = Reads::when_received},
    {.name = "net_null", .any_mtu = true},
};
constexpr Pmd nic = {.name = "NIC", .real_speed = true, .reads = Reads::by_device};
// It finds its server again only after a restart.
constexpr Pmd memif_client = {.name = "net_memif",
                              .heals = Heals::restart,
                              .any_mtu = true,
                              .takes_mac = true,
                              .connects_by_interrupts = true,
                              .reads = Reads::at_once};
// Its peer maps the memory of DPDK, and no other.
constexpr Pmd memif_zero_copy = {.name = "net_memif",
                                 .heals = Heals::restart,
                                 .any_mtu = true,
                                 .takes_mac = true,
                                 .connects_by_interrupts = true};

std::string mac_text(const Mac& mac) {
  std::array<char, 18> text{};
  const auto at = [&](unsigned i) { return static_cast<unsigned>(mac[i]); };
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", at(0), at(1), at(2),
                at(3), at(4), at(5));
  return text.data();
}

// Appends an argument, unless it is given.
void add(std::string& arguments, std::string_view key, std::string_view value) {
  if (!argument(arguments, key).empty()) return;
  if (!arguments.empty()) arguments += ',';
  arguments.append(key).append("=").append(value);
}

}  // namespace

const Pmd& pmd_of(const Settings& settings) {
  for (const Pmd& one : pmds) {
    if (!settings.port.starts_with(one.name)) continue;
    const bool client = argument(settings.arguments, "role") != "server";  // the default
    if (one.name != memif_client.name || !client) return one;
    return argument(settings.arguments, "zero-copy") == "yes" ? memif_zero_copy : memif_client;
  }
  return nic;
}

uint32_t slot_bytes(const Settings& settings, const Pmd& pmd) {
  const bool large = settings.ip_mtu + frame_overhead > most_in_small_slot;
  return pmd.name == "net_af_packet" && large ? large_slot_bytes : 0;
}

std::string_view argument(std::string_view arguments, std::string_view key) {
  while (!arguments.empty()) {
    const std::string_view one = arguments.substr(0, arguments.find(','));
    arguments.remove_prefix(std::min(arguments.size(), one.size() + 1));
    if (one.starts_with(key) && one.substr(key.size()).starts_with('=')) {
      return one.substr(key.size() + 1);
    }
  }
  return {};
}

Result<std::string> port_arguments(const Settings& settings, const Pmd& pmd, const Mac& mac) {
  const auto refuse = [&](const std::string& why, const std::string& fix) {
    return Error{Status::invalid_argument, "dpdk: " + settings.port + ": " + why + ". Fix: " + fix};
  };
  if (settings.ip_mtu > pmd.most_ip_mtu) {
    return refuse("this port carries packets of at most " + std::to_string(pmd.most_ip_mtu) +
                      " bytes, and mtu is " + std::to_string(settings.ip_mtu),
                  "a smaller mtu");
  }
  if (settings.port.starts_with("net_tap")) {
    return refuse("this kind of port installs a signal handler in the process",
                  "net_af_packet0,iface=NAME with the name of the interface");
  }
  std::string out = settings.arguments;
  if (settings.queues > 1 && !pmd.queues_argument.empty()) {
    add(out, pmd.queues_argument, std::to_string(settings.queues));
  }
  if (pmd.takes_mac) add(out, "mac", mac_text(mac));
  const uint32_t frame = settings.ip_mtu + frame_overhead;
  if (pmd.name == "net_memif") {
    // An abstract socket, the default, has no permissions, and a closed port never ends it.
    add(out, "socket-abstract", "no");
    // A frame larger than a slot is corrupted when the ring is full.
    const std::string needed = std::to_string(frame <= 2048 ? 2048 : (frame + 1023) / 1024 * 1024);
    add(out, "bsize", needed);
    const std::string_view given = argument(out, "bsize");
    uint32_t bytes = 0;
    std::from_chars(given.data(), given.data() + given.size(), bytes);
    if (bytes < frame) {
      return refuse("bsize=" + std::string(given) +
                        " is too small for mtu=" + std::to_string(settings.ip_mtu),
                    "bsize=" + needed + " at both ends, or leave it out");
    }
  }
  if (pmd.name == "net_virtio_user") add(out, "queue_size", "1024");
  if (pmd.name == "net_af_xdp") add(out, "busy_budget", "0");
  if (pmd.name == "net_af_packet") {
    // With the default of 512 frames, bursts are lost that no counter shows.
    add(out, "framecnt", "4096");
    if (frame > most_in_small_slot) {
      add(out, "framesz", std::to_string(large_slot_bytes));
      add(out, "blocksz", "65536");
    }
  }
  return out;
}

std::string_view own_socket(const Settings& settings, const Pmd& pmd) {
  if (pmd.heals != Heals::itself) return {};  // a client
  if (pmd.name == "net_memif") return argument(settings.arguments, "socket");
  const bool listens = argument(settings.arguments, "client") != "1";
  return pmd.name == "net_vhost" && listens ? argument(settings.arguments, "iface") : "";
}

bool make_way_for_socket(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  struct stat about {};
  if (path.empty() || path.size() >= sizeof address.sun_path) return true;
  path.copy(address.sun_path, path.size());
  if (lstat(address.sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) return true;
  const int probe = above_standard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe < 0) return true;
  const bool connected = connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const int why = connected ? 0 : errno;
  close(probe);
  if (why == ECONNREFUSED) unlink(address.sun_path);
  return !connected && why != EAGAIN;  // EAGAIN: many wait to be accepted
}

std::string cure_for_port(const Settings& settings, const std::string& log) {
  const auto says = [&](const char* what) { return log.find(what) != log.npos; };
  if (settings.is_pci()) {
    return "bind the NIC to vfio-pci (dpdk-devbind.py --bind=vfio-pci " + settings.port +
           "), and run as root or give this user /dev/vfio";
  }
  if (settings.port.starts_with("net_virtio_user")) {
    return "start the vhost side first, and set path= to its socket, which this user must be able "
           "to write to";
  }
  if (settings.port.starts_with("net_memif") || settings.port.starts_with("net_vhost")) {
    return "a socket path that this user may create and no other process uses";
  }
  if (says("larger than combined queue count")) {
    return "a smaller queues=, or more queues of the interface (ethtool -L NAME combined N)";
  }
  if (says("Permission") || says("not permitted")) {
    return "run as root, or give this process CAP_NET_RAW and CAP_NET_ADMIN";
  }
  if (settings.port.starts_with("net_af_")) {
    return "iface=NAME of an interface that is up, and run as root";
  }
  return "a name that begins with that of a driver of DPDK, and a number: net_memif0, "
         "net_virtio_user0, net_vhost0, net_af_packet0, net_af_xdp0";
}

}  // namespace urma::drivers::dpdk
