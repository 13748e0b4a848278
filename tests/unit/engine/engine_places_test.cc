// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_places.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

// docs/protocol.md, section 12.
TEST_CASE("the EIDs of further engines follow from the first one, and in a window are addresses") {
  using engine::eid_of_engine;
  const Eid first = ipv4(10, 0, 0, 1);
  const Endpoint place{first, 4794};
  CHECK(to_string(eid_of_engine(first, 2, place)) == "fd5a:3f02:ed42:f3c2:4802::1");
  CHECK(eid_of_engine(first, 0, place) == first);
  CHECK(eid_of_engine(first, 1, place) != eid_of_engine(first, 2, place));
  CHECK(eid_of_engine(ipv4(10, 0, 0, 2), 2, place) != eid_of_engine(first, 2, place));
  const Eid slot = parse_address("fd75:726d:6181:3396:852:c2cc:da00:2").value();
  CHECK(eid_of_engine(first, 1, {slot, 4792}) == slot);
}

TEST_CASE("a Jetty is at the engine that its id says") {
  Descriptor device;
  device.at = {ipv4(10, 0, 0, 1), 4792};
  device.engines = {{ipv4(10, 0, 0, 1), 4793}, {ipv4(10, 0, 0, 1), 4794}};
  for (uint32_t id = 3000; id < 3006; ++id) {
    device.jetty = Descriptor::Jetty{.id = JettyId{id}, .token = {}};
    CHECK(engine::place_of_jetty(device).port == 4792 + id % 3);
  }
  CHECK(engine::places_of(device).size() == 3);
  device.engines.clear();
  CHECK(engine::place_of_jetty(device) == device.at);
}

}  // namespace
}  // namespace urma::test
