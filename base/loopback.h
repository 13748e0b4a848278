// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/above_standard.h"

namespace urma {

// Returns whether the interface lo is down, as it is in a new network namespace: then no packet
// reaches an address of this host, and sockets report no error. Returns false if this cannot be
// found out.
inline bool loopback_is_down() {
  const int socket = above_standard(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket < 0) return false;
  ifreq lo{.ifr_ifrn = {"lo"}, .ifr_ifru = {}};
  const bool down = ioctl(socket, SIOCGIFFLAGS, &lo) == 0 && (lo.ifr_flags & IFF_UP) == 0;
  close(socket);
  return down;
}

}  // namespace urma
