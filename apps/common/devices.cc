// SPDX-License-Identifier: Apache-2.0
#include "apps/common/devices.h"

#include <fmt/format.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>

#include "apps/common/failure.h"
#include "apps/common/output.h"
#include "base/interfaces.h"
#include "base/socket_address.h"

namespace urma::apps {
namespace {

// Returns the device at this address. `port` is empty, or begins with a colon.
std::string device_at(const Eid& address, std::string_view port = "") {
  const std::string text = to_string(address);
  return Endpoint{address, 0}.is_ipv4() ? fmt::format("udp:{}{}", text, port)
                                        : fmt::format("udp:[{}]{}", text, port);
}

// Returns false for an address that other hosts cannot use, and for the IPv4 loopback, of which the
// device takes a free address itself.
bool has_device(const Eid& address) {
  const auto byte = [&](size_t at) { return std::to_integer<unsigned>(address.bytes[at]); };
  if (Endpoint{address, 0}.is_ipv4()) {
    const bool link_local = byte(12) == 169 && byte(13) == 254;
    return byte(12) != IN_LOOPBACKNET && !link_local;
  }
  const bool link_local = byte(0) == 0xfe && byte(1) >> 6 == 0b10;
  return !link_local;
}

// Returns whether the address belongs to this host. Only such an address can be bound.
bool is_of_this_host(const Eid& host) {
  SocketAddress address;
  // Port 0 is any free port, so this takes no port from a server.
  const socklen_t length = to_sockaddr({host, 0}, address);
  const int probe = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool bound = bind(probe, &address.any, length) == 0;
  close(probe);
  return bound;
}

// Returns the device on the address from which this host reaches another one; empty if there is no
// route.
std::string device_routed_to(const Endpoint& where) {
  SocketAddress address;
  const socklen_t to = to_sockaddr(where, address);
  socklen_t length = sizeof address;
  const int probe = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // Connecting a datagram socket sends no packet; it only consults the routing table.
  const bool known = probe >= 0 && connect(probe, &address.any, to) == 0 &&
                     getsockname(probe, &address.any, &length) == 0;
  if (probe >= 0) close(probe);
  return known ? device_at(from_sockaddr(address.any).address) : std::string();
}

}  // namespace

std::optional<Setting> chosen_device_setting() {
  const Result<Configuration> read = configuration();
  // A file that does not exist is not a peer that does not.
  if (read.status() == Status::not_found) {
    throw Failure(Exit::error, "settings: " + read.error().message);
  }
  const Configuration chosen = must(read, "settings");
  const Setting& device = chosen.settings.front();
  return device.origin == Origin::by_default ? std::nullopt : std::optional(device);
}

std::optional<std::string> chosen_device() {
  const auto setting = chosen_device_setting();
  return setting ? std::optional(setting->value) : std::nullopt;
}

std::string device_towards(const std::string& host) {
  if (std::optional<std::string> chosen = chosen_device()) return *chosen;
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
  const Endpoint server = from_sockaddr(*found->ai_addr);
  freeaddrinfo(found);
  // A server on this host takes port 4792 of each of its addresses, and of the first loopback
  // address where that port is free. A client that is started first must leave them to it.
  std::string device =
      is_of_this_host(server.address) ? device_at(server.address, ":0") : device_routed_to(server);
  return device.empty() ? fallback : device;
}

std::vector<std::string> devices_of_this_host() {
  if (std::optional<std::string> chosen = chosen_device()) return {*chosen};
  std::vector<std::string> devices = {std::string(default_device), "udp:"};
  find_interface_address([&](const InterfaceAddress& one) {
    if ((one.flags & IFF_UP) == 0 || !has_device(one.address)) return false;
    std::string device = device_at(one.address);
    const bool seen = std::ranges::find(devices, device) != devices.end();
    if (!seen) devices.push_back(std::move(device));
    return false;
  });
  return devices;
}

}  // namespace urma::apps
