// SPDX-License-Identifier: Apache-2.0
#include "fabric/routes.h"

#include <map>

#include "base/prng.h"
#include "fabric/packet.h"
#include "tests/catch.h"

namespace urma::fabric {
namespace {

std::vector<uint16_t> copy_of(std::span<const uint16_t> ports) {
  return {ports.begin(), ports.end()};
}

TEST_CASE("a port that claims an address keeps it until it detaches") {
  Routes routes(most_addresses, 4);
  CHECK(routes.attach(7, 2));
  CHECK(routes.attach(7, 2));
  CHECK_FALSE(routes.attach(7, 3));
  CHECK(routes.owner(7) == 2);
  const uint16_t others[] = {0, 1};
  CHECK(routes.set(6, 8, others));
  CHECK(copy_of(routes.find(7)) == std::vector<uint16_t>{2});
  CHECK(copy_of(routes.find(6)) == std::vector<uint16_t>{0, 1});
  routes.detach(7);
  CHECK(routes.owner(7) == Routes::none);
  CHECK(routes.find(7).empty());
  CHECK(routes.attach(7, 3));
}

TEST_CASE("routes refuse addresses and ports that do not exist") {
  Routes routes(100, 4);
  const uint16_t good[] = {3};
  const uint16_t bad[] = {0, 4};
  CHECK_FALSE(routes.attach(100, 0));
  CHECK_FALSE(routes.attach(0, 4));
  CHECK_FALSE(routes.set(0, 100, good));
  CHECK_FALSE(routes.set(2, 1, good));
  CHECK_FALSE(routes.set(0, 1, bad));
  CHECK_FALSE(routes.set(0, 1, {}));
  routes.detach(100);
  for (const uint32_t address : {0u, 1u, 99u, 100u, UINT32_MAX}) {
    CHECK(routes.find(address).empty());
    CHECK(routes.owner(address) == Routes::none);
  }
}

TEST_CASE("routes find what a map finds") {
  Prng prng(1);
  Routes routes(64, 8);
  std::map<uint32_t, std::vector<uint16_t>> ports;
  std::map<uint32_t, uint32_t> owners;
  for (int step = 0; step < 20'000; ++step) {
    const auto address = static_cast<uint32_t>(prng.below(64));
    const auto port = static_cast<uint16_t>(prng.below(8));
    if (prng.chance(0.4)) {
      const bool free = !owners.contains(address) || owners[address] == port;
      REQUIRE(routes.attach(address, port) == free);
      if (free) owners[address] = port, ports[address] = {port};
    } else if (prng.chance(0.5)) {
      routes.detach(address);
      if (owners.erase(address) > 0) ports.erase(address);
    } else {
      const uint16_t both[] = {port, static_cast<uint16_t>(prng.below(8))};
      const auto last = static_cast<uint32_t>(prng.between(address, 63));
      REQUIRE(routes.set(address, last, both));
      for (uint32_t each = address; each <= last; ++each) {
        if (!owners.contains(each)) ports[each] = copy_of(both);
      }
    }
    const auto asked = static_cast<uint32_t>(prng.below(64));
    const bool known = ports.contains(asked);
    REQUIRE(copy_of(routes.find(asked)) == (known ? ports[asked] : std::vector<uint16_t>{}));
    REQUIRE(routes.owner(asked) == (owners.contains(asked) ? owners[asked] : Routes::none));
  }
}

}  // namespace
}  // namespace urma::fabric
