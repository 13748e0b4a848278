// SPDX-License-Identifier: Apache-2.0
#include "wire/link.h"

#include <vector>

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"

namespace urma::test {
namespace {

std::vector<std::byte> link_datagram(const LinkWord& word, const Cna24Nth& nth, size_t bytes) {
  std::vector<std::byte> out(link_head_bytes + bytes, std::byte{0x5a});
  const std::span<std::byte> all(out);
  word.emit(all.first<LinkWord::size>());
  nth.emit(all.subspan<LinkWord::size, Cna24Nth::size>());
  return out;
}

TEST_CASE("a link's headers are read as they were written, and each bit has one meaning or none") {
  check_header<LinkWord>(bits(6, 7) + bits(30, 31));
  check_header<LinkControl>({});
}

TEST_CASE("a packet in a datagram of a link is read as it was written") {
  const LinkWord word{.per_packet = true, .hops = 3, .switch_queue = 17};
  const Cna24Nth nth{.source = 5, .destination = 6, .cci = 0x0780, .lbf = 9, .service_level = 2};
  const auto datagram = link_datagram(word, nth, 20);
  const auto packet = parse_link_packet(datagram);
  REQUIRE(packet);
  CHECK(packet->word == word);
  CHECK(packet->nth == nth);
  CHECK(packet->packet.data() == datagram.data() + link_head_bytes);
  CHECK(packet->packet.size() == 20);
}

TEST_CASE("a datagram has no packet if it is short, or has another version, form or next header") {
  const auto whole = link_datagram({}, {}, 1);
  REQUIRE(parse_link_packet(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(parse_link_packet(std::span(whole).first(size)));
  }
  CHECK_FALSE(parse_link_packet(link_datagram({.form = LinkForm::control}, {}, 20)));
  CHECK_FALSE(parse_link_packet(link_datagram({.form = LinkForm{3}}, {}, 20)));
  CHECK_FALSE(parse_link_packet(link_datagram({}, {.next = Cna24Nth::next_ctp}, 20)));
  auto other = whole;
  other[1] = std::byte{LinkWord::version + 1};
  CHECK_FALSE(parse_link_packet(other));
}

TEST_CASE("a switch changes the word and CCI, and no other byte of a datagram") {
  const Cna24Nth nth{.source = 5, .destination = 6, .cci = 0x0780, .lbf = 9};
  const auto before = link_datagram({}, nth, 40);
  auto datagram = before;
  edit_link_packet(datagram, {.hops = 1, .switch_queue = 8}, 0x1234);
  const auto packet = parse_link_packet(datagram);
  REQUIRE(packet);
  CHECK(packet->word == LinkWord{.hops = 1, .switch_queue = 8});
  CHECK(packet->nth.cci == 0x1234);
  constexpr size_t cci_at = LinkWord::size + Cna24Nth::cci_at;
  for (size_t i = LinkWord::size; i < datagram.size(); ++i) {
    if (i != cci_at && i != cci_at + 1) CHECK(datagram[i] == before[i]);
  }
}

TEST_CASE("an attached message says how the ports of its switch read hints") {
  using congestion::Metering;
  for (const Metering one :
       {Metering::unknown, Metering::none, Metering::increases, Metering::rates}) {
    const LinkControl sent{.type = LinkMessage::attached, .cna = 7, .cookie = cookie_of(one)};
    const auto read = parse_link_control(control_datagram(sent));
    REQUIRE(read);
    CHECK(metering_of(*read) == one);
  }
  // A switch of a version that does not say it sends 0.
  CHECK(metering_of({.type = LinkMessage::attached}) == Metering::unknown);
  for (const uint64_t later : {uint64_t{4}, uint64_t{256}, UINT64_MAX}) {
    CHECK(metering_of({.type = LinkMessage::attached, .cookie = later}) == Metering::other);
  }
}

TEST_CASE("an attached message has the rate of the port beside its meters, if it says so") {
  using congestion::Metering;
  constexpr uint64_t most = UINT64_MAX >> link_rate_shift;
  for (const uint64_t rate : {uint64_t{0}, uint64_t{1}, uint64_t{12'500'000}, most}) {
    for (const Metering metering : {Metering::unknown, Metering::none, Metering::rates}) {
      LinkControl sent{.type = LinkMessage::attached, .cookie = cookie_of(metering)};
      CHECK(rate_of(sent) == 0);
      add_rate(sent, rate);
      const auto read = parse_link_control(control_datagram(sent));
      REQUIRE(read);
      CHECK(rate_of(*read) == rate);
      CHECK(metering_of(*read) == metering);
    }
  }
  LinkControl fastest{.type = LinkMessage::attached};
  add_rate(fastest, UINT64_MAX);
  CHECK(rate_of(fastest) == most);
  // A later version may have more meters.
  LinkControl later{.type = LinkMessage::attached, .cookie = 4};
  add_rate(later, 7);
  CHECK(metering_of(later) == Metering::other);
  CHECK(rate_of(later) == 7);
}

TEST_CASE("a control message with one wrong bit is not accepted") {
  const LinkControl message{.type = LinkMessage::attached,
                            .cna = 0x123456,
                            .mtu_log2 = 13,
                            .lease_ms = 5000,
                            .nonce = 0x0102030405060708};
  const LinkControlBytes whole = control_datagram(message);
  auto read = parse_link_control(whole);
  REQUIRE(read);
  read->crc = 0;
  CHECK(*read == message);
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(parse_link_control(std::span(whole).first(size)));
  }
  for (size_t bit = LinkWord::size * 8; bit < whole.size() * 8; ++bit) {
    LinkControlBytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(parse_link_control(damaged));
  }
  // No datagram is both.
  CHECK_FALSE(parse_link_packet(whole));
  CHECK_FALSE(parse_link_control(link_datagram({}, {}, link_control_bytes - link_head_bytes)));
}

TEST_CASE("the address of a switch has the port of links unless it names another one") {
  CHECK(parse_switch_endpoint("10.0.0.9").value() == Endpoint{ipv4(10, 0, 0, 9), 4794});
  CHECK(parse_switch_endpoint("10.0.0.9:80").value() == Endpoint{ipv4(10, 0, 0, 9), 80});
  CHECK(parse_switch_endpoint("::1").value().port == 4794);
  CHECK(parse_switch_endpoint("[::1]").value().port == 4794);
  CHECK(parse_switch_endpoint("[::1]:80").value().port == 80);
  // The usual port of devices is not replaced if it is named.
  CHECK(parse_switch_endpoint("10.0.0.9:4792").value().port == 4792);
  CHECK(!parse_switch_endpoint("10.0.0.9:x"));
}

}  // namespace
}  // namespace urma::test
