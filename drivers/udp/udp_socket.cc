// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/udp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/above_standard.h"
#include "base/interfaces.h"

#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif

namespace urma::drivers::udp {
namespace {

Error system_error(std::string what, int why) {
  const Status status = why == EADDRINUSE                 ? Status::address_in_use
                        : why == EACCES || why == EPERM   ? Status::permission_denied
                        : why == EMFILE || why == ENOBUFS ? Status::no_resources
                        : why == EADDRNOTAVAIL            ? Status::invalid_argument
                                                          : Status::io_error;
  std::string message = "udp: " + std::move(what) + ": " + std::strerror(why);
  const std::string_view fix =
      why == EADDRNOTAVAIL ? "use an address of this machine (see: ip addr)"
      : why == EMFILE      ? "close descriptors, or allow more (ulimit -n)"
      : why == EACCES || why == EPERM
          ? "use a port from 1024 on, or a container that allows sockets"
      : why == EAFNOSUPPORT
          ? "use an IPv4 address, or allow IPv6 (net.ipv6.conf.all.disable_ipv6=0)"
          : "";
  if (fix.empty()) return error(status, std::move(message));
  return {status, message + ". Fix: " + std::string(fix)};
}

// Returns the beginning of a small file.
std::string beginning_of_file(const std::string& path) {
  std::string text(512, '\0');
  const int file = above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file < 0 ? -1 : ::read(file, text.data(), text.size());
  if (file >= 0) ::close(file);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// Returns the directory in which the kernel describes the interface.
std::string directory_of(std::string_view interface) {
  // An address may have a label, NAME:LABEL.
  return "/sys/class/net/" + std::string(interface.substr(0, interface.find(':')));
}

}  // namespace

uint64_t rate_of_speed(std::string_view text) {
  constexpr uint64_t bytes_of_megabit = 125'000;
  constexpr uint64_t most = 10'000'000;  // Mb/s; some drivers say UINT32_MAX for unknown
  uint64_t megabits = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), megabits);
  if (failure != std::errc{} || megabits > most) return 0;
  return megabits * bytes_of_megabit;
}

uint64_t rate_of_interface(const std::string& directory) {
  const std::string kind = beginning_of_file(directory + "/uevent");
  const bool joins_others =
      kind.find("DEVTYPE=bond\n") != kind.npos || kind.find("DEVTYPE=vlan\n") != kind.npos;
  const bool is_device = ::access((directory + "/device").c_str(), F_OK) == 0;
  return is_device || joins_others ? rate_of_speed(beginning_of_file(directory + "/speed")) : 0;
}

Result<Socket> Socket::make(const Settings& settings) {
  const int family = settings.is_ipv4() ? AF_INET : AF_INET6;
  const int descriptor =
      above_standard(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (descriptor < 0) return system_error("making a socket", errno);
  Socket socket(descriptor, settings);
  // The ICRC needs packets without fragments and automatic flow labels. RECVERR reports ICMP
  // errors.
  bool set =
      !settings.ecn || (family == AF_INET6 ? socket.set_option(IPPROTO_IPV6, IPV6_RECVTCLASS, 1)
                                           : socket.set_option(IPPROTO_IP, IP_RECVTOS, 1));
  if (family == AF_INET6) {
    set = set && socket.set_option(IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
          socket.set_option(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
          socket.set_option(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0) &&
          socket.set_option(IPPROTO_IPV6, IPV6_RECVERR, 1);
  } else {
    // With DF, the kernel sets the ID to 0 on a socket that is not connected.
    set = set && socket.set_option(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
          socket.set_option(IPPROTO_IP, IP_RECVERR, 1);
  }
  if (!set) return system_error("setting socket options", errno);
  return socket;
}

Socket::Socket(int descriptor, const Settings& settings) : descriptor_(descriptor) {
  // With privilege, the buffer may exceed the limit of the system.
  const auto wanted = static_cast<int>(settings.rcvbuf);
  if (!set_option(SOL_SOCKET, SO_RCVBUFFORCE, wanted)) set_option(SOL_SOCKET, SO_RCVBUF, wanted);
  if (!set_option(SOL_SOCKET, SO_SNDBUFFORCE, wanted)) set_option(SOL_SOCKET, SO_SNDBUF, wanted);
  gso_ = settings.gso && !settings.zero_id && set_option(SOL_UDP, UDP_SEGMENT, 0);
  gro_ = settings.gro && set_option(SOL_UDP, UDP_GRO, 1);
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::coalesce(bool on) const {
  if (gro_) set_option(SOL_UDP, UDP_GRO, on ? 1 : 0);
}

uint32_t Socket::buffer_bytes(int which) const {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  getsockopt(descriptor_, SOL_SOCKET, which, &bytes, &length);
  // The kernel reports twice the requested size, to account for its overhead.
  return static_cast<uint32_t>(bytes) / 2;
}

Socket::Interface Socket::interface_of(const Endpoint& self) const {
  Interface found;
  const bool loopback4 = self.is_ipv4() && self.address.bytes[12] == std::byte{127};
  find_interface_address([&](const InterfaceAddress& one) {
    // The loopback interface has all of 127/8, but lists only 127.0.0.1.
    const bool ours = one.address == self.address || (loopback4 && (one.flags & IFF_LOOPBACK) != 0);
    if (!ours) return false;
    ifreq request{};
    one.label.copy(request.ifr_name, IFNAMSIZ - 1);
    if (ioctl(descriptor_, SIOCGIFMTU, &request) == 0) {
      found = {.name = std::string(one.label),
               .mtu = static_cast<uint32_t>(request.ifr_mtu),
               .bytes_per_second = rate_of_interface(directory_of(one.label))};
    }
    return true;
  });
  return found;
}

// ---- addresses

bool Socket::bind_to(const Endpoint& endpoint) {
  SocketAddress address;
  const socklen_t length = to_sockaddr(endpoint, address);
  return ::bind(descriptor_, &address.any, length) == 0;
}

Result<Endpoint> Socket::bind(const Settings& settings) {
  if (settings.address == Eid{}) {
    for (uint8_t n = 1; n < 255; ++n) {
      const Endpoint at{ipv4(127, 0, 0, n), ub_port};
      if (bind_to(at)) return at;
      if (errno != EADDRINUSE) return system_error("binding " + to_string(at), errno);
    }
    return system_error("binding any of 127.0.0.1 to 127.0.0.254, port 4792", EADDRINUSE);
  }
  Endpoint at{settings.address, settings.port != 0 ? settings.port : ub_port};
  if (!settings.any_port) {
    if (bind_to(at)) return at;
    if (settings.port != 0 || errno != EADDRINUSE) {
      return system_error("binding " + to_string(at), errno);
    }
  }
  at.port = 0;
  if (!bind_to(at)) return system_error("binding " + to_string(at), errno);
  SocketAddress bound{};
  socklen_t length = sizeof bound;
  getsockname(descriptor_, &bound.any, &length);
  return from_sockaddr(bound.any);
}

bool Socket::share(const Socket& other, const Endpoint& address) {
  // Both sockets must have REUSEPORT while the second one is bound. Unlike REUSEADDR, it does not
  // admit other users; afterwards it is off for both.
  const auto allow = [&](int value) {
    set_option(SOL_SOCKET, SO_REUSEPORT, value);
    other.set_option(SOL_SOCKET, SO_REUSEPORT, value);
  };
  allow(1);
  const bool bound = bind_to(address);
  allow(0);
  return bound;
}

bool Socket::connect(const Endpoint& peer) {
  SocketAddress address;
  const socklen_t length = to_sockaddr(peer, address);
  return ::connect(descriptor_, &address.any, length) == 0;
}

}  // namespace urma::drivers::udp
