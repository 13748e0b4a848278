// SPDX-License-Identifier: Apache-2.0
// Tokens and Jetty numbers that the application chooses, as programs written for UMDK do.
#include <vector>

#include "tests/api/helpers.h"
#include "urma/core/descriptor.h"

namespace urma::test {
namespace {

constexpr TokenValue secret{0xacfe};

// Returns the descriptor that a peer writes which has the address, the number and the token alone.
std::string line_of(const Device& device, JettyId id, TokenValue token) {
  Descriptor descriptor;
  descriptor.at = device.endpoint();
  descriptor.eid = device.eid();
  descriptor.jetty = {.id = id, .token = token};
  return to_string(descriptor);
}

TEST_CASE("a peer reaches a segment by the token that its owner chose, and by no other") {
  for (const std::string_view driver : media) {
    INFO(driver);
    UserAndOwner both(driver);
    Segment segment = both.owner.device.allocate(4096, {.token = secret}).value();
    RemoteSegment there = both.import(segment);
    CHECK(there.token == secret);
    const auto data = bytes_like(5, 1);
    CHECK(both.run(write(data, there)) == Status::ok);
    there.token = TokenValue(number(secret) + 1);
    CHECK(both.run(write(data, there)) == Status::remote_access);
    REQUIRE(segment.unregister().ok());
    there.token = secret;
    CHECK(both.run(write(data, there)) == Status::remote_access);
  }
}

TEST_CASE("a chosen token is neither replaced nor shared") {
  Side side = Side::open("udp:");
  Segment segment = side.device.allocate(4096, {.token = secret}).value();
  const auto refused = segment.rotate();
  CHECK(refused.status() == Status::invalid_argument);
  CHECK(refused.error().message.ends_with("Fix: leave SegmentOptions::token out"));
  CHECK(side.segment.rotate().ok());
  const auto beside = side.device.allocate(4096, {.with = &segment, .token = secret});
  CHECK(beside.status() == Status::invalid_argument);
  CHECK(side.device.allocate(4096, {.with = &segment}).value().local().token == secret);
}

TEST_CASE("all engines of a device know a chosen token") {
  Side owner = Side::open("udp:?engines=2", {.threads = Threads::served});
  const Segment segment = owner.device.allocate(4096, {.token = secret}).value();
  Side user = Side::open("udp:?engines=2");
  std::vector<Jetty> jetties;
  for (int i = 0; i < 2; ++i) jetties.push_back(user.device.jetty().value());
  RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
  const auto data = bytes_like(5, 1);
  for (Jetty& jetty : jetties) CHECK(run_one(jetty, write(data, there)).ok());
  there.token = TokenValue(number(secret) + 1);
  for (Jetty& jetty : jetties) {
    CHECK(run_one(jetty, write(data, there)).status == Status::remote_access);
  }
}

TEST_CASE("a peer sends to a chosen number with a chosen token, without a descriptor") {
  for (const std::string_view driver : media) {
    INFO(driver);
    UserAndOwner both(driver);
    const JettyId well_known{5};
    Jetty jetty =
        both.owner.device.jetty({.receives = 4, .id = well_known, .token = secret}).value();
    CHECK(jetty.id() == well_known);
    std::vector<std::byte> room(64);
    REQUIRE(jetty.receive(room));
    const auto data = bytes_like(5, 2);
    const auto target = [&](TokenValue token) {
      return both.user.device.import(line_of(both.owner.device, well_known, token)).value().jetty;
    };
    CHECK(both.run(send(data, target(TokenValue(1)))) == Status::remote_access);
    CHECK(both.run(send(data, target(secret))) == Status::ok);
    const auto arrived = jetty.wait(5s);
    REQUIRE(arrived.size() == 1);
    CHECK(arrived[0].jetty == well_known);
    // The sender is known by its address, too.
    CHECK(both.owner.device.endpoint(arrived[0].from).value() == both.user.device.endpoint());
  }
}

TEST_CASE("a chosen number is refused while it is in use or out of range") {
  Side side = Side::open("udp:");
  const auto status = [&](uint32_t id) { return side.device.jetty({.id = JettyId(id)}).status(); };
  for (const uint32_t id : {0u, 1u, id_limit, UINT32_MAX}) {
    INFO(id);
    CHECK(status(id) == Status::invalid_argument);
    CHECK(side.device.jfr({.id = JettyId(id)}).status() == Status::invalid_argument);
  }
  for (const uint32_t id : {2u, 1023u, 1024u, id_limit - 1}) {
    INFO(id);
    std::optional<Jetty> jetty = side.device.jetty({.id = JettyId(id)}).value();
    CHECK(status(id) == Status::address_in_use);
    CHECK(side.device.jfr({.id = JettyId(id)}).status() == Status::address_in_use);
    jetty.reset();
    CHECK(side.device.jfr({.id = JettyId(id)}).ok());
    CHECK(status(id) == Status::ok);
  }
  // Chosen numbers are not given to others afterwards.
  for (int i = 0; i < 100; ++i) {
    CHECK(side.device.jetty().value().id() >= first_dynamic_jetty);
  }
}

TEST_CASE("a device with several engines draws the numbers of its Jetties itself") {
  Side side = Side::open("udp:?engines=2");
  const auto refused = side.device.jetty({.id = JettyId(7)});
  CHECK(refused.status() == Status::unsupported);
  CHECK(refused.error().message.ends_with("Fix: leave the id out, or engines= of the device"));
  CHECK(side.device.jetty({.token = secret}).value().local().token == secret);
}

TEST_CASE("a device says at which address a peer is, until that has left") {
  for (const std::string_view driver : media) {
    INFO(driver);
    UserAndOwner both(driver);
    const PeerId owner = both.import(both.owner.segment).peer;
    CHECK(both.user.device.endpoint(owner).value() == both.owner.device.endpoint());
    CHECK(both.user.device.endpoint(both.user.segment.local().peer).value() ==
          both.user.device.endpoint());
    CHECK(both.user.device.endpoint(PeerId{}).status() == Status::invalid_argument);
    CHECK(both.user.device.endpoint(PeerId{7, 7}).status() == Status::invalid_argument);
  }
}

}  // namespace
}  // namespace urma::test
