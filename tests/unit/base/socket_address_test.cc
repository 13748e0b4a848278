// SPDX-License-Identifier: Apache-2.0
#include "base/socket_address.h"

#include "base/interfaces.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("an endpoint becomes a socket address of its family, and the same endpoint again") {
  struct Row {
    const char* text;
    sa_family_t family;
    socklen_t length;
  };
  const Row row = GENERATE(Row{"10.0.0.7:4791", AF_INET, sizeof(sockaddr_in)},
                           Row{"255.1.2.3:65535", AF_INET, sizeof(sockaddr_in)},
                           Row{"[fe80::1:2]:4792", AF_INET6, sizeof(sockaddr_in6)},
                           Row{"[::1]:1", AF_INET6, sizeof(sockaddr_in6)});
  const Endpoint endpoint = parse_endpoint(row.text).value();
  SocketAddress address;
  CHECK(to_sockaddr(endpoint, address) == row.length);
  CHECK(address.any.sa_family == row.family);
  CHECK(from_sockaddr(address.any) == endpoint);
}

TEST_CASE("ports and addresses are in network order") {
  SocketAddress address;
  to_sockaddr(parse_endpoint("10.0.0.7:4791").value(), address);
  CHECK(address.v4.sin_port == htons(4791));
  CHECK(address.v4.sin_addr.s_addr == htonl(0x0a000007));
}

TEST_CASE("the addresses of interfaces are visited until one is wanted") {
  size_t all = 0;
  CHECK_FALSE(find_interface_address([&](const InterfaceAddress& one) {
    CHECK_FALSE(one.label.empty());
    CHECK_FALSE(one.address == Eid{});
    ++all;
    return false;
  }));
  if (all == 0) return;  // a new network namespace
  size_t visited = 0;
  CHECK(find_interface_address([&](const InterfaceAddress&) { return ++visited == all; }));
  CHECK(visited == all);
}

}  // namespace
}  // namespace urma::test
