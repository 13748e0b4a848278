// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ifaddrs.h>
#include <net/if.h>

#include <memory>
#include <string_view>

#include "base/socket_address.h"

namespace urma {

// An address of an interface of this host.
struct InterfaceAddress {
  Eid address;
  std::string_view label;  // NAME or NAME:LABEL
  unsigned flags = 0;      // of the interface: IFF_UP, IFF_LOOPBACK
};

// Calls `is_wanted` with each IPv4 and IPv6 address of this host until it returns true. Returns
// whether it did; false, too, if the addresses cannot be listed.
template <class Function>
bool find_interface_address(Function&& is_wanted) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  // `is_wanted` may throw.
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (is_wanted(InterfaceAddress{.address = from_sockaddr(*one->ifa_addr).address,
                                   .label = one->ifa_name,
                                   .flags = one->ifa_flags})) {
      return true;
    }
  }
  return false;
}

}  // namespace urma
