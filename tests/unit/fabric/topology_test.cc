// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology.h"

#include "fabric/network.h"
#include "tests/catch.h"

namespace urma::fabric {
namespace {

using namespace std::chrono_literals;

// Sends a packet from each host to each other one, and returns the most switches that one passed.
unsigned longest_way(const Topology& topology) {
  Network network(topology, {});
  uint32_t arrived = 0;
  unsigned longest = 0;
  Network::Happening it;
  for (uint32_t from = 0; from < topology.hosts; ++from) {
    for (uint32_t to = 0; to < topology.hosts; ++to) {
      if (from == to) continue;
      network.send(from, {.source = Topology::address_of(from),
                          .destination = Topology::address_of(to),
                          .bytes = 100});
      REQUIRE(network.next(never, it));
      CHECK(it.host == to);
      longest = std::max<unsigned>(longest, it.packet.hops);
      ++arrived;
    }
  }
  CHECK(arrived == topology.hosts * (topology.hosts - 1));
  return longest;
}

TEST_CASE("each host reaches each other one through the fewest switches") {
  CHECK(longest_way(star(9, {})) == 1);
  CHECK(longest_way(parking_lot({.hops = 4, .pairs = 2})) == 5);
  CHECK(longest_way(leaf_spine({.leaves = 5, .hosts_per_leaf = 3, .spines = 4})) == 3);
}

TEST_CASE("a leaf has all spines as ports of equal cost to the hosts of other leaves") {
  std::vector<Switch> switches =
      make_switches(leaf_spine({.leaves = 3, .hosts_per_leaf = 2, .spines = 4}), {});
  REQUIRE(switches.size() == 7);
  for (uint32_t leaf = 0; leaf < 3; ++leaf) {
    for (uint32_t host = 0; host < 6; ++host) {
      const Routes& routes = switches[leaf].routes();
      const size_t expected = host / 2 == leaf ? 1 : 4;
      CHECK(routes.find(Topology::address_of(host)).size() == expected);
      CHECK((routes.owner(Topology::address_of(host)) != Routes::none) == (host / 2 == leaf));
    }
  }
  for (uint32_t spine = 3; spine < 7; ++spine) {
    for (uint32_t host = 0; host < 6; ++host) {
      const auto ports = switches[spine].routes().find(Topology::address_of(host));
      REQUIRE(ports.size() == 1);
      CHECK(ports[0] == host / 2);
    }
  }
}

TEST_CASE("a packet takes the time of its lines and cables, and no other") {
  Network network(star(2, {.bytes_per_second = 1'000'000'000, .delay = 500ns}), {});
  network.send(0, {.source = 1, .destination = 2, .bytes = 1000});
  network.send(0, {.source = 1, .destination = 2, .bytes = 1000});
  Network::Happening it;
  REQUIRE(network.next(never, it));
  CHECK(network.now() == Time(3000ns));
  REQUIRE(network.next(never, it));
  CHECK(network.now() == Time(4000ns));
  CHECK_FALSE(network.next(Time(1ms), it));
  CHECK(network.now() == Time(1ms));
}

}  // namespace
}  // namespace urma::fabric
