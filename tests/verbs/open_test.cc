// SPDX-License-Identifier: Apache-2.0
// Devices that cannot be opened: the errors, and their cures.

#include <cerrno>

#include "tests/drivers/opening.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using soft::AdapterFacts;
using soft::Link;

const std::vector<Eid> one_address = {ipv4(10, 9, 0, 1)};

TEST_CASE("a machine without adapters, and adapters that do not suit, are refused") {
  soft::clear();
  check_refused("verbs:", Status::unsupported, "rdma link add rxe0");
  {
    const soft::OnlyAdapter adapter;
    check_refused("verbs:mlx5_0", Status::invalid_argument, "soft0");
    check_refused("verbs:soft0?port=2", Status::invalid_argument, "port=1");
    check_refused("verbs:soft0?gid=7", Status::invalid_argument, "10.9.0.1");
    check_refused("verbs:soft0?gid=10.0.0.1", Status::invalid_argument, "10.9.0.1");
    check_refused("verbs:soft0?gid=0", Status::invalid_argument, "RoCE v1");
  }
  {
    const soft::OnlyAdapter iwarp({.link = Link::iwarp, .addresses = one_address});
    check_refused("verbs:soft0", Status::unsupported, "use udp:");
  }
  {
    const soft::OnlyAdapter bare(AdapterFacts{});
    check_refused("verbs:soft0", Status::unsupported, "ip addr add");
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("an adapter that this user may not open, or that is not set up, is refused") {
  const int why = GENERATE(EACCES, EPERM, ENODEV);
  const soft::OnlyAdapter adapter({.addresses = one_address, .opens = why});
  check_refused("verbs:soft0", why == ENODEV ? Status::unsupported : Status::permission_denied,
                why == ENODEV ? "ib_uverbs" : "/dev/infiniband/uverbs");
  CHECK(soft::objects() == 0);
}

TEST_CASE("an MTU of 1024 carries no UB packet, and the error says how to raise it") {
  const soft::OnlyAdapter adapter({.addresses = one_address, .mtu = 1024});
  check_refused("verbs:soft0", Status::unsupported, "ip link set eth0 mtu 4200");
  CHECK(soft::objects() == 0);
}

TEST_CASE("a process that may lock too little memory is told how much is needed") {
  const soft::OnlyAdapter adapter({.addresses = one_address, .most_locked = 1 << 20});
  check_refused("verbs:soft0", Status::no_resources, "in all, only");
  CHECK(soft::objects() == 0);
}

TEST_CASE(
    "a service that another device has is refused, and without a wish any free one is taken") {
  const soft::OnlyAdapter adapter;
  const auto first = PortPair::open("verbs:soft0");
  CHECK(first->facts().self.port == ub_port);
  check_refused("verbs:soft0?service=4792", Status::address_in_use, "service");
  const auto second = PortPair::open("verbs:");
  CHECK(second->facts().self.port != ub_port);
}

TEST_CASE("the MTU follows from the adapter's, and small data is copied as far as it allows") {
  struct Case {
    uint32_t mtu, payload, most_inline;
  };
  const auto one = GENERATE(Case{4096, 2048, 256}, Case{2048, 1024, 100}, Case{4096, 2048, 0});
  const soft::OnlyAdapter adapter(
      {.addresses = one_address, .mtu = one.mtu, .most_inline = one.most_inline});
  const auto port = PortPair::open("verbs:soft0");
  CHECK(port->facts().mtu == one.payload);
}

}  // namespace
}  // namespace urma::test
