// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/gid.h"

#include <array>

#include "tests/catch.h"

namespace urma::test {
namespace {

using drivers::verbs::choose_gid;
using drivers::verbs::Gid;
using drivers::verbs::GidWish;
using drivers::verbs::grh_bytes;
using drivers::verbs::sender_of;

Eid address(std::string_view text) { return parse_address(text).value(); }

// As a RoCE port lists them: each address in both versions, that of the link first.
const Gid table[] = {
    {.address = address("fe80::1"), .index = 0, .kind = Gid::Kind::roce1},
    {.address = address("fe80::1"), .index = 1, .kind = Gid::Kind::roce2},
    {.address = address("2001:db8::5"), .index = 2, .kind = Gid::Kind::roce1},
    {.address = address("2001:db8::5"), .index = 3, .kind = Gid::Kind::roce2},
    {.address = address("10.0.0.5"), .index = 4, .kind = Gid::Kind::roce1},
    {.address = address("10.0.0.5"), .index = 5, .kind = Gid::Kind::roce2},
    {.address = {}, .index = 6, .kind = Gid::Kind::roce2},
};

uint32_t chosen(std::span<const Gid> from, const GidWish& wish = {}) {
  const Result<Gid> gid = choose_gid(from, wish, "rxe0, port 1");
  INFO((gid.ok() ? std::string() : gid.error().message));
  REQUIRE(gid.ok());
  return gid->index;
}

std::string why_not(std::span<const Gid> from, const GidWish& wish = {}) {
  const Result<Gid> gid = choose_gid(from, wish, "rxe0, port 1");
  REQUIRE(!gid.ok());
  return gid.error().message;
}

bool says(const std::string& message, std::string_view part) {
  return message.find(part) != message.npos;
}

}  // namespace

TEST_CASE("the GID that most networks forward is chosen, and none of RoCE v1") {
  const std::span all(table);
  CHECK(chosen(all) == 5);
  CHECK(chosen(all.first(4)) == 3);
  CHECK(chosen(all.first(3)) == 1);
  const std::string none_usable = why_not(all.first(1));
  CHECK(says(none_usable, "rxe0, port 1 has no GID"));
  CHECK(says(none_usable, "0 (fe80::1, RoCE v1)"));
  CHECK(says(none_usable, "ip addr add"));
  CHECK(says(why_not({}), "its GIDs are: none"));
}

TEST_CASE("a GID is chosen by number or address") {
  CHECK(chosen(table, {.index = 3}) == 3);
  CHECK(chosen(table, {.address = address("2001:db8::5")}) == 3);
  CHECK(chosen(table, {.address = address("fe80::1")}) == 1);
  // RoCE v1 cannot be used, and an entry without an address is none.
  CHECK(says(why_not(table, {.index = 4}), "no such GID"));
  CHECK(says(why_not(table, {.index = 4}), "gid=auto"));
  CHECK(says(why_not(table, {.index = 6}), "no such GID"));
  CHECK(says(why_not(table, {.index = 7}), "no such GID"));
  CHECK(says(why_not(table, {.address = address("10.0.0.6")}), "5 (10.0.0.5, RoCE v2)"));
}

TEST_CASE("a port of InfiniBand has one kind of GID") {
  const Gid one[] = {{.address = address("fe80::2:c903:0:1"), .kind = Gid::Kind::infiniband}};
  CHECK(chosen(one) == 0);
}

namespace {

std::array<std::byte, grh_bytes> filled(std::byte with) {
  std::array<std::byte, grh_bytes> header;
  header.fill(with);
  return header;
}

// An IPv4 header as it arrives: 10.2.0.1 to 10.2.0.2, behind 20 bytes of anything.
std::array<std::byte, grh_bytes> ipv4_header() {
  constexpr uint8_t header[] = {0x45, 0x02, 0x00, 0x64, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                0x26, 0x81, 10,   2,    0,    1,    10,   2,    0,    2};
  std::array<std::byte, grh_bytes> out = filled(std::byte{0x60});
  std::memcpy(out.data() + 20, header, sizeof header);
  return out;
}

}  // namespace

TEST_CASE("the sender of a datagram is read from its routing header") {
  CHECK(sender_of(ipv4_header()) == address("10.2.0.1"));
  auto six = filled(std::byte{0x45});
  six[0] = std::byte{0x60};
  std::memcpy(six.data() + 8, address("2001:db8::9").bytes.data(), 16);
  CHECK(sender_of(six) == address("2001:db8::9"));
}

TEST_CASE("an IPv4 header behind zeros needs no checksum") {
  auto header = ipv4_header();
  std::fill_n(header.begin(), 20, std::byte{0});
  header[30] = header[31] = std::byte{0};
  CHECK(sender_of(header) == address("10.2.0.1"));
}

TEST_CASE("bytes that only look like an IPv4 header are a part of an IPv6 header") {
  for (size_t at = 20; at < grh_bytes; ++at) {
    auto header = ipv4_header();
    header[at] ^= std::byte{0x10};
    CHECK(sender_of(header) != address("10.2.0.1"));
    CHECK(!Endpoint{sender_of(header), 0}.is_ipv4());
  }
}

}  // namespace urma::test
