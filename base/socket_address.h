// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "urma/core/endpoint.h"

namespace urma {

// An address as the calls of sockets take and return it.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// Returns the length of the address.
inline socklen_t to_sockaddr(const Endpoint& endpoint, SocketAddress& out) {
  out = {};
  if (endpoint.is_ipv4()) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(endpoint.port);
    std::memcpy(&out.v4.sin_addr, endpoint.address.bytes.data() + 12, 4);
    return sizeof out.v4;
  }
  out.v6.sin6_family = AF_INET6;
  out.v6.sin6_port = htons(endpoint.port);
  std::memcpy(&out.v6.sin6_addr, endpoint.address.bytes.data(), 16);
  return sizeof out.v6;
}

// `in` is the beginning of an address of its family, IPv4 or IPv6.
inline Endpoint from_sockaddr(const sockaddr& in) {
  Endpoint endpoint;
  if (in.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(in);
    endpoint.address = ipv4(0, 0, 0, 0);
    std::memcpy(endpoint.address.bytes.data() + 12, &v4.sin_addr, 4);
    endpoint.port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(in);
    std::memcpy(endpoint.address.bytes.data(), &v6.sin6_addr, 16);
    endpoint.port = ntohs(v6.sin6_port);
  }
  return endpoint;
}

}  // namespace urma
