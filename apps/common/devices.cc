#include "apps/common/devices.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "apps/common/output.h"

namespace urma::apps {
namespace {

// Returns the device on an interface's address. Empty for an address that other hosts cannot use,
// and for the IPv4 loopback, of which the device takes a free address itself.
std::string device_on(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const in_addr v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    const uint32_t host = ntohl(v4.s_addr);
    constexpr uint32_t link_local = 0xa9fe;  // 169.254/16
    if (host >> 24 == IN_LOOPBACKNET || host >> 16 == link_local) return {};
    inet_ntop(AF_INET, &v4, text, sizeof text);
    return fmt::format("udp:{}", text);
  }
  if (address.sa_family == AF_INET6) {
    const in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&v6)) return {};
    inet_ntop(AF_INET6, &v6, text, sizeof text);
    return fmt::format("udp:[{}]", text);
  }
  return {};
}

// Returns whether the address belongs to this host. Only such an address can be bound.
bool is_of_this_host(const addrinfo& where) {
  sockaddr_storage address{};
  std::memcpy(&address, where.ai_addr, where.ai_addrlen);
  // Port 0 is any free port, so this takes no port from a server.
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = 0;
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = 0;
  }
  const int probe = socket(where.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool bound = bind(probe, reinterpret_cast<sockaddr*>(&address), where.ai_addrlen) == 0;
  close(probe);
  return bound;
}

// Returns an empty text if the address cannot be written.
std::string device_at(const sockaddr& address, socklen_t length, std::string_view port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (getnameinfo(&address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return address.sa_family == AF_INET6 ? fmt::format("udp:[{}]{}", text, port)
                                       : fmt::format("udp:{}{}", text, port);
}

// Returns the device on the address from which this host reaches another one; empty if there is no
// route.
std::string device_routed_to(const addrinfo& where) {
  const int probe = socket(where.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage self{};
  socklen_t length = sizeof self;
  // Connecting a datagram socket sends no packet; it only consults the routing table.
  const bool known = probe >= 0 && connect(probe, where.ai_addr, where.ai_addrlen) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&self), &length) == 0;
  if (probe >= 0) close(probe);
  return known ? device_at(reinterpret_cast<sockaddr&>(self), length, "") : std::string();
}

}  // namespace

std::string device_towards(const std::string& host) {
  if (host == "localhost") return std::string(default_device);
  const std::string fallback = "udp:";
  const auto numeric = parse_endpoint(host);
  if (numeric && in_window(numeric->address)) return std::string(default_device);
  std::string name = numeric ? to_string(numeric->address) : host.substr(0, host.rfind(':'));
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), "4792", &hints, &found) != 0) {
    return fallback;
  }
  // A server on this host takes port 4792 of each of its addresses, and of the first loopback
  // address where that port is free. A client that is started first must leave them to it.
  std::string device = is_of_this_host(*found) ? device_at(*found->ai_addr, found->ai_addrlen, ":0")
                                               : device_routed_to(*found);
  freeaddrinfo(found);
  return device.empty() ? fallback : device;
}

std::vector<std::string> devices_of_this_host() {
  std::vector<std::string> devices = {std::string(default_device), "udp:"};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return devices;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::string device = device_on(*one->ifa_addr);
    const bool seen = std::ranges::find(devices, device) != devices.end();
    if (!device.empty() && !seen) devices.push_back(std::move(device));
  }
  freeifaddrs(all);
  return devices;
}

}  // namespace urma::apps
