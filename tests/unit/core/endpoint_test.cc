// SPDX-License-Identifier: Apache-2.0
#include "urma/core/endpoint.h"

#include <span>

#include "tests/catch.h"
#include "tests/unit/mentions.h"
#include "tests/unit/random_headers.h"

namespace urma::test {
namespace {

using namespace std::string_view_literals;

TEST_CASE("addresses are read and written in their usual notation") {
  const Eid loopback = parse_address("127.0.0.1").value();
  CHECK(loopback == ipv4(127, 0, 0, 1));
  CHECK(to_string(loopback) == "127.0.0.1");
  CHECK(Endpoint{loopback, 1}.is_ipv4());
  const Eid six = parse_address("2001:db8:0:0:0:0:0:1").value();
  CHECK(to_string(six) == "2001:db8::1");
  CHECK(six.bytes[0] == std::byte{0x20});
  CHECK(six.bytes[15] == std::byte{1});
  CHECK_FALSE(Endpoint{six, 1}.is_ipv4());
  CHECK(to_string(Eid{}) == "::");
  CHECK(parse_address("::ffff:10.0.0.1").value() == ipv4(10, 0, 0, 1));
}

TEST_CASE("any address and endpoint can be read back from its text") {
  Prng prng(1);
  for (int round = 0; round < 5000; ++round) {
    Eid eid = random_eid(prng);
    if (prng.chance(0.3)) eid = ipv4(random8(prng), random8(prng), random8(prng), random8(prng));
    const Endpoint endpoint{eid, static_cast<uint16_t>(prng.between(1, 65535))};
    INFO(to_string(endpoint));
    REQUIRE(parse_address(to_string(eid)).value() == eid);
    REQUIRE(parse_endpoint(to_string(endpoint)).value() == endpoint);
  }
}

TEST_CASE("a missing port means the UB port") {
  CHECK(parse_endpoint("10.0.0.1").value() == Endpoint{ipv4(10, 0, 0, 1), 4792});
  CHECK(parse_endpoint("10.0.0.1:1").value() == Endpoint{ipv4(10, 0, 0, 1), 1});
  CHECK(parse_endpoint("10.0.0.1:65535").value() == Endpoint{ipv4(10, 0, 0, 1), 65535});
  const Eid one = parse_address("::1").value();
  CHECK(parse_endpoint("::1").value() == Endpoint{one, 4792});
  CHECK(parse_endpoint("[::1]").value() == Endpoint{one, 4792});
  CHECK(parse_endpoint("[::1]:4000").value() == Endpoint{one, 4000});
  // Without brackets the last group belongs to the address, and is not a port.
  CHECK(parse_endpoint("::1:4000").value() == Endpoint{parse_address("::1:4000").value(), 4792});
}

TEST_CASE("which endpoints reach each other: both IPv4, IPv6, in one window, or behind switches") {
  const auto at = [](const char* text) { return parse_address(text).value(); };
  const Eid four[] = {at("127.0.0.1"), at("10.0.0.1")};
  const Eid six[] = {at("::1"), at("fd75:726d:6200::1")};
  const Eid window[] = {at("fd75:726d:6111:2222:3333:4444:5500:1"),
                        at("fd75:726d:6111:2222:3333:4444:5500:100")};
  const Eid other[] = {at("fd75:726d:6111:2222:3333:4444:5600:1")};
  const Eid switched[] = {cna_address(1), cna_address(most_cna)};
  const std::span<const Eid> groups[] = {four, six, window, other, switched};
  for (const auto& from : groups) {
    for (const auto& to : groups) {
      for (const Eid& a : from) {
        for (const Eid& b : to) CHECK(may_reach(a, b) == (from.data() == to.data()));
      }
    }
  }
  CHECK(in_window(window[0]));
  CHECK_FALSE(in_window(six[1]));
}

TEST_CASE("the address of a device behind a switch has its CNA, and no other address is one") {
  CHECK(to_string(cna_address(7)) == "fd55:4200::7");
  CHECK(to_string(cna_address(most_cna)) == "fd55:4200::ff:ffff");
  for (const uint32_t cna : {0u, 1u, 0xffu, 0x123456u, most_cna}) {
    const Eid address = cna_address(cna);
    CHECK(is_switched(address));
    CHECK(cna_of(address) == cna);
    for (size_t byte = 0; byte < 13; ++byte) {
      Eid changed = address;
      changed.bytes[byte] ^= std::byte{1};
      CHECK_FALSE(is_switched(changed));
    }
  }
}

TEST_CASE("an invalid endpoint is refused, and the error quotes it") {
  for (const std::string_view text : {"",
                                      ":",
                                      ":4792",
                                      "localhost",
                                      "localhost:4792",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.256",
                                      "1.2.3.4:",
                                      "1.2.3.4:0",
                                      "1.2.3.4:65536",
                                      "1.2.3.4:-1",
                                      "1.2.3.4:+1",
                                      "1.2.3.4:4792x",
                                      "1.2.3.4: 1",
                                      " 1.2.3.4",
                                      "1.2.3.4 ",
                                      "1.2.3.4:1:2",
                                      "[::1",
                                      "[::1]4792",
                                      "[::1]:",
                                      "[::1]:0",
                                      "[::1]:x",
                                      "[]",
                                      "[]:1",
                                      "::1]",
                                      "[[::1]]",
                                      "g::",
                                      "1::2::3",
                                      "::1%lo"}) {
    INFO("\"" << text << "\"");
    const auto endpoint = parse_endpoint(text);
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.status() == Status::invalid_argument);
    CHECK(endpoint.error().message.find('"') == 0);
  }
  CHECK(mentions(parse_endpoint("1.2.3.4:70000").error().message, "1.2.3.4:70000"));
  CHECK(mentions(parse_endpoint("[::1").error().message, "\"[::1\""));
  CHECK(mentions(parse_address("me").error().message, "\"me\""));
}

TEST_CASE("text behind a zero byte is not ignored") {
  CHECK_FALSE(parse_address("127.0.0.1\0 and more"sv));
  CHECK_FALSE(parse_endpoint("[::1\0x]:4792"sv));
}

TEST_CASE("addresses are ordered by their bytes") {
  CHECK(ipv4(1, 2, 3, 4) < ipv4(1, 2, 4, 3));
  CHECK(ipv4(9, 0, 0, 0) < ipv4(200, 0, 0, 0));
  CHECK(parse_address("::1").value() < ipv4(0, 0, 0, 0));
}

}  // namespace
}  // namespace urma::test
