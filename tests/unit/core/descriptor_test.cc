// SPDX-License-Identifier: Apache-2.0
#include "urma/core/descriptor.h"

#include "tests/catch.h"
#include "tests/unit/mentions.h"
#include "tests/unit/random_headers.h"

namespace urma::test {
namespace {

Descriptor random_descriptor(Prng& prng) {
  Descriptor out{.at = {random_eid(prng), static_cast<uint16_t>(prng.between(1, 65535))},
                 .eid = random_eid(prng),
                 .life = Incarnation(random64(prng)),
                 .segment = {},
                 .jetty = {}};
  // Adds at most three more addresses, which always fit.
  for (auto places = prng.below(4); places > 0; --places) {
    out.also.push_back({random_eid(prng), static_cast<uint16_t>(prng.between(1, 65535))});
  }
  if (coin(prng)) {
    const uint64_t address = random64(prng);
    out.segment = {.id = TokenId(random_id(prng)),
                   .token = TokenValue(random32(prng)),
                   .address = address,
                   .bytes = std::min(random64(prng), UINT64_MAX - address),
                   .rights = static_cast<Rights>(prng.below(8))};
  }
  if (coin(prng)) out.jetty = {JettyId(random_id(prng)), TokenValue(random32(prng))};
  return out;
}

TEST_CASE("any descriptor can be read back from its line, which is not too long") {
  Prng prng(1);
  for (int round = 0; round < 3000; ++round) {
    const Descriptor descriptor = random_descriptor(prng);
    const std::string line = to_string(descriptor);
    INFO(line);
    REQUIRE(line.size() <= max_descriptor_bytes);
    REQUIRE(line.find('\n') == line.npos);
    REQUIRE(parse_descriptor(line).value() == descriptor);
    REQUIRE(parse_descriptor(line + "\r\n").value() == descriptor);
  }
}

const std::string good =
    "urma1 at=127.0.0.1:4792 eid=10.0.0.1 life=9c0f segment=1f:8b2d90aa:7f1200000000:1048576:rwa "
    "jetty=417:90aa8b2d";

TEST_CASE("a line lists as many other addresses as fit, and not more than a device can have") {
  Descriptor descriptor = parse_descriptor(good).value();
  descriptor.also = {{ipv4(10, 0, 1, 1), 4792}, {ipv4(10, 0, 2, 1), 5000}};
  const std::string line = to_string(descriptor);
  CHECK(line == good + " also=10.0.1.1:4792,10.0.2.1:5000");
  CHECK(parse_descriptor(line).value() == descriptor);
  Prng prng(2);
  descriptor.also.assign(7, {random_eid(prng), 65535});
  descriptor.at = descriptor.also[0];
  descriptor.eid = descriptor.at.address;
  descriptor.life = Incarnation(UINT64_MAX);
  descriptor.segment->address = descriptor.segment->bytes = UINT64_MAX / 2;
  const std::string longest = to_string(descriptor);
  CHECK(longest.size() <= max_descriptor_bytes);
  const size_t named = parse_descriptor(longest).value().also.size();
  CHECK(named >= 3);
  CHECK(named < 7);
  for (const char* const wrong : {" also=", " also=10.0.0.1:1,", " also=,10.0.0.1:1", " also=x",
                                  " also=10.0.0.1:1 also=10.0.0.1:2",
                                  " also=1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,"
                                  "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1"}) {
    INFO(wrong);
    CHECK_FALSE(parse_descriptor(good + wrong).ok());
  }
}

TEST_CASE("a line lists what differs in the addresses of further engines") {
  Descriptor descriptor = parse_descriptor(good).value();
  descriptor.engines = {{descriptor.at.address, 4793}, {ipv4(10, 0, 0, 2), 4792}};
  CHECK(to_string(descriptor) == good + " engines=:4793,10.0.0.2:4792");
  CHECK(parse_descriptor(to_string(descriptor)).value() == descriptor);
  // Slots of a window. The longest line has room for all engines.
  descriptor.at.address = parse_address("fd75:726d:61ff:ffff:ffff:ffff:ffff:100").value();
  descriptor.eid = descriptor.at.address;
  descriptor.life = Incarnation(UINT64_MAX);
  descriptor.segment->address = descriptor.segment->bytes = UINT64_MAX / 2;
  descriptor.engines.assign(most_engines - 1, descriptor.at);
  for (unsigned i = 0; i < most_engines - 1; ++i)
    descriptor.engines[i].address.bytes[15] = static_cast<std::byte>(0xf0 + i);
  const std::string line = to_string(descriptor);
  CHECK(line.ends_with(" engines=/1f0,/1f1,/1f2,/1f3,/1f4,/1f5,/1f6"));
  CHECK(parse_descriptor(line).value() == descriptor);
  Prng prng(3);
  descriptor.at = {random_eid(prng), 65535};
  descriptor.engines.assign(most_engines - 1, {descriptor.at.address, 65534});
  CHECK(to_string(descriptor).size() <= max_descriptor_bytes);
  CHECK(parse_descriptor(to_string(descriptor)).value() == descriptor);
  for (const char* const wrong :
       {" engines=", " engines=:", " engines=:0", " engines=:65536", " engines=/",
        " engines=/10000", " engines=/0", " engines=:1,", " engines=:1 engines=:2", " engines=x",
        " engines=:1,:2,:3,:4,:5,:6,:7,:8"}) {
    INFO(wrong);
    CHECK_FALSE(parse_descriptor(good + wrong).ok());
  }
  // They are read by the address that stands before them.
  CHECK_FALSE(parse_descriptor("urma1 engines=:1 at=127.0.0.1:4792 eid=10.0.0.1 life=9c0f").ok());
}

TEST_CASE("each field of a line is read into the right member") {
  const Descriptor descriptor = parse_descriptor(good).value();
  CHECK(descriptor.at == Endpoint{ipv4(127, 0, 0, 1), 4792});
  CHECK(descriptor.eid == ipv4(10, 0, 0, 1));
  CHECK(descriptor.life == Incarnation(0x9c0f));
  CHECK(*descriptor.segment ==
        Descriptor::Segment{.id = TokenId(0x1f),
                            .token = TokenValue(0x8b2d90aa),
                            .address = 0x7f1200000000,
                            .bytes = 1048576,
                            .rights = Rights::read | Rights::write | Rights::atomic});
  CHECK(*descriptor.jetty == Descriptor::Jetty{JettyId(0x417), TokenValue(0x90aa8b2d)});
  CHECK(to_string(descriptor) == good);
  CHECK(parse_descriptor("urma1 life=9c0f jetty=417:90aa8b2d eid=10.0.0.1 "
                         "segment=1f:8b2d90aa:7f1200000000:1048576:wra at=127.0.0.1:4792")
            .value() == descriptor);
}

TEST_CASE("a descriptor names the executor of a segment's atomics if it is not the processor") {
  std::string line = good;
  for (const auto& [domain, name] :
       {std::pair(AtomicDomain::engine, "engine"), {AtomicDomain::device, "device"}}) {
    line = good;
    line.replace(line.find(":rwa"), 4, std::string(":rwa:") + name);
    const Descriptor descriptor = parse_descriptor(line).value();
    CHECK(descriptor.segment->atomics == domain);
    CHECK(to_string(descriptor) == line);
  }
}

std::string with(std::string_view part, std::string_view instead) {
  std::string line = good;
  const size_t at = line.find(part);
  REQUIRE(at != line.npos);
  return line.replace(at, part.size(), instead);
}

TEST_CASE("a line that is not a descriptor is refused, and the error quotes the wrong word") {
  const struct {
    std::string line;
    std::string quoted;
  } cases[] = {
      {"", "\"\""},
      {"urma2" + good.substr(5), "\"urma2\""},
      {" " + good, "\"\""},
      {good + " ", "\"\""},
      {good + " colour=red", "\"colour=red\""},
      {good + " life=1", "\"life=1\""},
      {good + " jetty=1:1", "\"jetty=1:1\""},
      {with(" eid", "  eid"), "\"\""},
      {with("at=127", "at 127"), "\"at\""},
      {with("4792", "0"), "\"at=127.0.0.1:0\""},
      {with("eid=10.0.0.1", "eid=ten"), "\"eid=ten\""},
      {with("life=9c0f", "life="), "\"life=\""},
      {with("life=9c0f", "life=-1"), "\"life=-1\""},
      {with("life=9c0f", "life=0x1"), "\"life=0x1\""},
      {with("life=9c0f", "life=10000000000000000"), "\"life=10000000000000000\""},
      {with("jetty=417:90aa8b2d", "jetty=417"), "\"jetty=417\""},
      {with("jetty=417:90aa8b2d", "jetty=417:1:1"), "\"jetty=417:1:1\""},
      {with("jetty=417", "jetty=100000"), "\"jetty=100000:90aa8b2d\""},
      {with("90aa8b2d", "190aa8b2d"), "\"jetty=417:190aa8b2d\""},
      {with("=1f:", "=100000:"), "segment=100000:"},
      {with("8b2d90aa", "18b2d90aa"), "segment=1f:18b2d90aa"},
      {with(":1048576:", ":1048576x:"), "1048576x"},
      {with(":1048576:", ":18446744073709551616:"), "18446744073709551616"},
      {with("7f1200000000:1048576", "fffffffffff00000:1048576"), "fffffffffff00000"},
      {with(":rwa", ""), "segment=1f:8b2d90aa:7f1200000000:1048576\""},
      {with(":rwa", ":"), "1048576:\""},
      {with(":rwa", ":rr"), ":rr\""},
      {with(":rwa", ":rx"), ":rx\""},
      {with(":rwa", ":r-"), ":r-\""},
      {with(":rwa", ":rwa:"), ":rwa:\""},
      {with(":rwa", ":rwa:processor"), ":rwa:processor\""},
      {with(":rwa", ":rwa:engine:engine"), ":rwa:engine:engine\""},
  };
  for (const auto& [line, quoted] : cases) {
    INFO(line);
    const auto descriptor = parse_descriptor(line);
    REQUIRE_FALSE(descriptor);
    CHECK(descriptor.status() == Status::invalid_argument);
    CHECK(mentions(descriptor.error().message, quoted));
    CHECK(mentions(descriptor.error().message, "Fix:"));
  }
}

TEST_CASE("a line without address, EID or incarnation is refused; segment and Jetty are optional") {
  for (const std::string_view word : {"at=127.0.0.1:4792 ", "eid=10.0.0.1 ", "life=9c0f "}) {
    CHECK(mentions(parse_descriptor(with(word, "")).error().message, "lacks"));
  }
  CHECK(parse_descriptor("urma1 at=1.2.3.4 eid=::1 life=0").value() ==
        Descriptor{.at = {ipv4(1, 2, 3, 4), ub_port},
                   .eid = parse_address("::1").value(),
                   .life = {},
                   .segment = {},
                   .jetty = {}});
}

TEST_CASE("a line that is too long is refused, with a short error") {
  const std::string line = good + std::string(max_descriptor_bytes, ' ');
  const auto descriptor = parse_descriptor(line);
  REQUIRE_FALSE(descriptor);
  CHECK(mentions(descriptor.error().message, "too long"));
  CHECK(descriptor.error().message.size() < 250);
}

TEST_CASE("a line with any one character changed is refused, or is another well-formed line") {
  for (size_t at = 0; at < good.size(); ++at) {
    for (int c = 0; c < 128; ++c) {
      std::string line = good;
      line[at] = static_cast<char>(c);
      const auto descriptor = parse_descriptor(line);
      if (!descriptor) continue;
      REQUIRE(parse_descriptor(to_string(*descriptor)).value() == *descriptor);
    }
  }
}

}  // namespace
}  // namespace urma::test
