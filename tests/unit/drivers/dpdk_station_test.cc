// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/station.h"

#include <vector>

#include "base/bits.h"
#include "tests/bytes.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using namespace drivers::dpdk;
using Kind = Station::Kind;
using FrameBytes = std::vector<std::byte>;

Mac mac_of(unsigned number) {
  return {std::byte{2}, {}, {}, {}, {}, static_cast<std::byte>(number)};
}
Eid four(unsigned host) { return ipv4(10, 9, 0, static_cast<uint8_t>(host)); }
Eid six(unsigned host) { return parse_address("fd00::" + std::to_string(host)).value(); }

Station::Settings settings_of(unsigned number, bool v6 = false) {
  return {.mac = mac_of(number),
          .address = v6 ? six(number) : four(number),
          .prefix_bits = v6 ? 64u : 24u};
}

// Several stations on one link: each frame reaches all others.
struct Link {
  std::vector<Station> stations;
  Time now{1s};

  explicit Link(std::initializer_list<Station::Settings> all) {
    for (const auto& one : all) stations.emplace_back(one);
  }
  // Delivers the stations' messages until none is left. Returns the number of messages.
  size_t settle() {
    size_t carried = 0;
    for (bool more = true; more;) {
      more = false;
      for (Station& from : stations) {
        for (auto message = from.message(); !message.empty(); message = from.message()) {
          const FrameBytes frame(message.begin(), message.end());
          from.pop_message();
          for (Station& to : stations) {
            if (&to != &from) to.take(frame, true, now);
          }
          more = true;
          ++carried;
        }
      }
    }
    return carried;
  }
};

// Returns a frame that `from` sends to `to` with these bytes. Both know each other.
FrameBytes frame_from(Station& from, const Endpoint& to, const FrameBytes& packet, Time now,
                      const Envelope::Marks& marks) {
  const Envelope* const envelope = from.envelope(to, now);
  REQUIRE(envelope != nullptr);
  FrameBytes frame(most_header_bytes);
  frame.insert(frame.end(), packet.begin(), packet.end());
  envelope->put(std::span(frame).subspan(most_header_bytes), marks);
  return {frame.begin() + static_cast<ptrdiff_t>(most_header_bytes - from.header_bytes()),
          frame.end()};
}
FrameBytes frame_from(Station& from, const Endpoint& to, const FrameBytes& packet, Time now,
                      Ecn ecn = Ecn::not_ect, uint32_t flow = 0) {
  return frame_from(from, to, packet, now, {.ecn = ecn, .flow = flow});
}

TEST_CASE("stations find each other by ARP and NDP, and exchange packets") {
  for (const bool v6 : {false, true}) {
    for (const uint16_t vlan : {uint16_t{0}, uint16_t{7}}) {
      Station::Settings first = settings_of(1, v6);
      Station::Settings second = settings_of(2, v6);
      first.vlan = second.vlan = vlan;
      first.dscp = 10;
      Link link{first, second};
      Station& a = link.stations[0];
      Station& b = link.stations[1];
      REQUIRE(a.reaches(b.self().address));
      CHECK(a.envelope(b.self(), link.now) == nullptr);
      CHECK(link.settle() == 2);  // a question and its answer
      for (const size_t bytes : {size_t{20}, size_t{21}, size_t{1100}}) {
        for (const Ecn ecn : {Ecn::not_ect, Ecn::ect0, Ecn::ce}) {
          const FrameBytes packet = bytes_like(bytes);
          const FrameBytes frame = frame_from(a, b.self(), packet, link.now, ecn);
          const Station::Arrival arrival = b.take(frame, true, link.now);
          REQUIRE(arrival.kind == Kind::packet);
          CHECK(same(arrival.packet, packet));
          CHECK(arrival.from == a.self());
          CHECK(arrival.ecn == ecn);
        }
      }
      // The host that was asked has learnt the address of the one that asked.
      CHECK(b.envelope(a.self(), link.now) != nullptr);
      CHECK(link.settle() == 0);
    }
  }
}

TEST_CASE("padding behind a packet is cut off") {
  Link link{settings_of(1), settings_of(2)};
  link.stations[0].envelope({four(2), ub_port}, link.now);
  link.settle();
  FrameBytes frame = frame_from(link.stations[0], link.stations[1].self(), bytes_like(4), link.now);
  frame.resize(60);
  CHECK(link.stations[1].take(frame, true, link.now).packet.size() == 4);
}

TEST_CASE("a frame with any wrong bit in its headers is refused, or its headers are others") {
  for (const bool v6 : {false, true}) {
    Link link{settings_of(1, v6), settings_of(2, v6)};
    Station& a = link.stations[0];
    Station& b = link.stations[1];
    a.envelope(b.self(), link.now);
    link.settle();
    const FrameBytes right = frame_from(a, b.self(), bytes_like(40), link.now);
    size_t packets = 0;
    for (size_t bit = 0; bit < a.header_bytes() * 8; ++bit) {
      FrameBytes wrong = right;
      wrong[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      packets += b.take(wrong, true, link.now).kind == Kind::packet;
    }
    // No checksum covers the sender's MAC address and, in IPv6, the traffic class, the flow label
    // and the hop limit. Over IPv4 the sender omits the UDP checksum, so nothing covers the ports
    // and the checksum field either: a wrong source port looks like another sender.
    CHECK(packets <= (v6 ? 48 + 8 + 20 + 8 : 48 + 16));
    for (size_t bytes = 0; bytes < right.size(); ++bytes) {
      CHECK(b.take(std::span(right).first(bytes), true, link.now).kind != Kind::packet);
    }
  }
}

TEST_CASE("IPv6 has a UDP checksum, and without the software's the port finds its beginning") {
  Link link{settings_of(1, true), settings_of(2, true)};
  Station& a = link.stations[0];
  Station& b = link.stations[1];
  a.envelope(b.self(), link.now);
  link.settle();
  FrameBytes frame = frame_from(a, b.self(), bytes_like(40), link.now);
  const size_t udp = a.header_bytes() - 8;
  CHECK(load_be<2>(&frame[udp + 6]) != 0);
  frame.back() ^= std::byte{1};
  CHECK(b.take(frame, true, link.now).kind == Kind::checksum);
  CHECK(b.take(frame, false, link.now).kind == Kind::packet);  // the port has verified it
  frame.back() ^= std::byte{1};
  store_be<2>(&frame[udp + 6], 0);
  CHECK(b.take(frame, true, link.now).kind == Kind::checksum);

  FrameBytes left =
      frame_from(a, b.self(), bytes_like(40), link.now, Envelope::Marks{.sums = false});
  const uint16_t sum = InternetSum().add(std::span(left).subspan(udp)).checksum();
  std::memcpy(&left[udp + 6], &sum, sizeof sum);
  CHECK(b.take(left, true, link.now).kind == Kind::packet);
}

TEST_CASE(
    "entropy changes the source port with the flow, and the sender's address stays the same") {
  Station::Settings sender = settings_of(1);
  sender.entropy = true;
  Link link{sender, settings_of(2)};
  Station& a = link.stations[0];
  Station& b = link.stations[1];
  a.envelope({four(2), ub_port}, link.now);
  link.settle();
  std::vector<uint64_t> ports;
  for (uint32_t flow = 0; flow < 10000; flow += 999) {
    const FrameBytes frame = frame_from(a, b.self(), bytes_like(40), link.now, {}, flow);
    ports.push_back(load_be<2>(&frame[a.header_bytes() - 8]));
    CHECK(Station::is_entropy(static_cast<uint16_t>(ports.back())));
    CHECK(b.take(frame, true, link.now).from == a.self());
  }
  std::ranges::sort(ports);
  CHECK(std::ranges::adjacent_find(ports) == ports.end());
}

TEST_CASE("packets to other networks leave by the gateway, and not without one") {
  Station::Settings first = settings_of(1);
  first.gateway = four(2);
  Link link{first, settings_of(2)};
  Station& a = link.stations[0];
  const Eid far = ipv4(192, 168, 1, 1);
  REQUIRE(a.reaches(far));
  CHECK_FALSE(link.stations[1].reaches(far));
  for (const Eid& none : {ipv4(224, 0, 0, 1), ipv4(255, 255, 255, 255), six(1), four(1), Eid{}}) {
    CHECK_FALSE(a.reaches(none));
  }
  CHECK(a.envelope({far, ub_port}, link.now) == nullptr);
  link.settle();
  const FrameBytes frame = frame_from(a, {far, ub_port}, bytes_like(40), link.now);
  CHECK(std::ranges::equal(std::span(frame).first(6), mac_of(2)));
}

TEST_CASE("an unknown neighbour is asked for repeatedly, not for each packet") {
  Station station(settings_of(1));
  Time now{1s};
  size_t questions = 0;
  for (int i = 0; i < 1000; ++i, now += 1ms) {
    CHECK(station.envelope({four(9), ub_port}, now) == nullptr);
    for (; !station.message().empty(); station.pop_message()) ++questions;
  }
  CHECK(questions == 10);
}

TEST_CASE("a host is followed to its new MAC address, and asked for it while packets leave to it") {
  Link link{settings_of(1), settings_of(2)};
  Station& a = link.stations[0];
  const Endpoint to = link.stations[1].self();
  a.envelope(to, link.now);
  link.settle();
  const auto hop = [&] {
    const FrameBytes frame = frame_from(a, to, bytes_like(40), link.now);
    return FrameBytes(frame.begin(), frame.begin() + 6);
  };
  CHECK(std::ranges::equal(hop(), mac_of(2)));
  Station::Settings moved = settings_of(2);
  moved.mac = mac_of(3);
  Station elsewhere(moved);
  elsewhere.announce();
  a.take(elsewhere.message(), true, link.now);
  CHECK(std::ranges::equal(hop(), mac_of(3)));

  size_t questions = 0;
  for (int i = 0; i < 4000 && a.envelope(to, link.now) != nullptr; ++i, link.now += 10ms) {
    for (; !a.message().empty(); a.pop_message()) ++questions;
  }
  CHECK(questions == Neighbours::patience);
  CHECK(a.envelope(to, link.now) == nullptr);
}

TEST_CASE("a neighbour that is silent is asked again, and forgotten; one that moves is found") {
  Neighbours neighbours;
  Time now{1s};
  CHECK(neighbours.find(four(2), now).ask);
  neighbours.learn(four(2), mac_of(2), false, now);
  CHECK_FALSE(neighbours.find(four(2), now + 29s).ask);
  now += 31s;
  uint32_t questions = 0;
  while (neighbours.find(four(2), now).mac != nullptr) {
    questions += neighbours.find(four(2), now).ask;
    now += 500ms;
    REQUIRE(now < Time(60s));
  }
  neighbours.learn(four(2), mac_of(3), false, now);
  CHECK(*neighbours.find(four(2), now).mac == mac_of(3));
  // An answer that nothing has asked for makes no entry.
  neighbours.learn(four(5), mac_of(5), false, now);
  CHECK(neighbours.find(four(5), now).mac == nullptr);
}

// Sends to these hosts of one network, which answer. Returns how many addresses are known then.
unsigned send_to(Neighbours& neighbours, unsigned hosts, Time now) {
  for (unsigned i = 1; i <= hosts; ++i) {
    neighbours.find(four(i), now);
    neighbours.learn(four(i), mac_of(i), false, now);
  }
  unsigned known = 0;
  for (unsigned i = 1; i <= hosts; ++i) known += neighbours.find(four(i), now).mac != nullptr;
  return known;
}

// The places of hosts depend on a secret key. By chance five share a set of four in one table of
// eighty.
TEST_CASE("hosts with similar addresses find room beside each other") {
  constexpr unsigned tables = 100;
  constexpr unsigned overfull = 15;  // sets; one or two are expected
  unsigned known = 0;
  for (unsigned i = 0; i < tables; ++i) {
    Neighbours neighbours;
    known += send_to(neighbours, 100, Time{1s});
  }
  CHECK(known >= tables * 100 - overfull * 5);
}

// Host `number` of many that ask.
Eid asker(unsigned number) {
  return ipv4(10, 8, static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number));
}

TEST_CASE("hosts that ask displace each other, not those to which this host sends") {
  constexpr unsigned hosts = 20;  // five of them share a set in one table of 300,000
  Neighbours neighbours;
  const Time now{1s};
  CHECK(send_to(neighbours, hosts, now) == hosts);
  for (unsigned i = 0; i < 20'000; ++i) neighbours.learn(asker(i), mac_of(7), true, now + 1s);
  unsigned known = 0;
  for (unsigned i = 1; i <= hosts; ++i) known += neighbours.find(four(i), now + 1s).mac != nullptr;
  CHECK(known == hosts);
}

TEST_CASE("hosts that ask find no room if this host sends to as many as the table can hold") {
  Neighbours neighbours;
  const Time now{1s};
  for (unsigned i = 0; i < 20 * Neighbours::most; ++i) {
    neighbours.find(ipv4(10, 7, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)), now);
  }
  for (unsigned i = 0; i < 1000; ++i) neighbours.learn(asker(i), mac_of(7), true, now + 1s);
  unsigned known = 0;
  for (unsigned i = 0; i < 1000; ++i) known += neighbours.find(asker(i), now + 1s).mac != nullptr;
  CHECK(known == 0);
}

// In about half of the tables, a host to which this host sends later shares a set with an earlier
// one.
TEST_CASE("a new neighbour displaces hosts that ask, even if they asked last") {
  constexpr unsigned tables = 40, hosts = 12;
  unsigned known = 0;
  for (unsigned table = 0; table < tables; ++table) {
    Neighbours neighbours;
    const Time now{1s};
    send_to(neighbours, hosts, now);
    for (unsigned i = 0; i < 20'000; ++i) neighbours.learn(asker(i), mac_of(7), true, now + 1s);
    for (unsigned i = 1; i <= hosts; ++i) neighbours.find(four(hosts + i), now + 2s);
    for (unsigned i = 1; i <= hosts; ++i)
      known += neighbours.find(four(i), now + 2s).mac != nullptr;
  }
  constexpr unsigned overfull = 1;  // sets; one in 2500 runs is expected
  CHECK(known >= tables * hosts - overfull * 5);
}

TEST_CASE("a sum of parts of any size is that of all their bytes") {
  const FrameBytes bytes = bytes_like(300);
  const uint16_t whole = InternetSum().add(bytes).folded();
  for (size_t first = 0; first < 40; ++first) {
    for (size_t second = 0; second < 40; ++second) {
      const std::span all(bytes);
      InternetSum parts;
      parts.add(all.first(first)).add(all.subspan(first, second)).add(all.subspan(first + second));
      CHECK(parts.folded() == whole);
      InternetSum rest;
      rest.add(all.subspan(first, second)).add(all.subspan(first + second));
      CHECK(InternetSum().add(all.first(first)).add(rest).folded() == whole);
    }
  }
}

// Returns a request of ping from one station to the other, an IP packet of so many bytes.
FrameBytes ping_between(const Station& from, const Station& to, size_t ip_bytes) {
  const bool v6 = !from.is_ipv4();
  drivers::dpdk::IpHeader ip{
      .from = from.self().address,
      .to = to.self().address,
      .protocol = v6 ? drivers::dpdk::IpProtocol::icmpv6 : drivers::dpdk::IpProtocol::icmp};
  ip.payload_bytes = ip_bytes - ip.bytes();
  FrameBytes echo = bytes_like(ip.payload_bytes);
  echo[0] = v6 ? std::byte{128} : std::byte{8};
  echo[1] = echo[2] = echo[3] = std::byte{0};
  InternetSum sum = v6 ? ip.pseudo_sum() : InternetSum();
  const uint16_t checksum = sum.add(echo).checksum();
  std::memcpy(&echo[2], &checksum, sizeof checksum);
  const drivers::dpdk::EthernetHeader ethernet{
      .to = to.settings().mac,
      .from = from.settings().mac,
      .type = v6 ? drivers::dpdk::EtherType::ipv6 : drivers::dpdk::EtherType::ipv4};
  FrameBytes frame(ethernet.bytes() + ip.bytes());
  ethernet.emit(frame.data());
  ip.emit(&frame[ethernet.bytes()]);
  frame.insert(frame.end(), echo.begin(), echo.end());
  return frame;
}

TEST_CASE("ping is answered, once for each request, and never by more than fits") {
  for (const bool v6 : {false, true}) {
    Link link{settings_of(1, v6), settings_of(2, v6)};
    Station& b = link.stations[1];
    const size_t ip_header = v6 ? drivers::dpdk::ipv6_bytes : drivers::dpdk::ipv4_bytes;
    FrameBytes frame = ping_between(link.stations[0], b, ip_header + 64);
    CHECK(b.take(frame, true, link.now).kind == Kind::answered);
    const FrameBytes answer(b.message().begin(), b.message().end());
    REQUIRE(answer.size() == frame.size());
    CHECK(answer[14 + ip_header] == (v6 ? std::byte{129} : std::byte{0}));
    CHECK(std::equal(answer.end() - 60, answer.end(), frame.end() - 60));
    for (int i = 0; i < 100; ++i) b.take(frame, true, link.now);
    size_t answers = 0;
    for (; !b.message().empty(); b.pop_message()) ++answers;
    CHECK(answers == 16);
    frame.back() ^= std::byte{1};
    CHECK(b.take(frame, true, link.now).kind == Kind::checksum);
    CHECK(b.message().empty());
  }
}

TEST_CASE("ping is answered up to the MTU") {
  for (const bool v6 : {false, true}) {
    for (const uint32_t mtu : {1280u, 1500u, 9000u}) {
      Station::Settings settings = settings_of(2, v6);
      settings.ip_mtu = mtu;
      Link link{settings_of(1, v6), settings};
      Station& b = link.stations[1];
      const FrameBytes largest = ping_between(link.stations[0], b, mtu);
      for (int i = 0; i < 20; ++i) {
        CHECK(b.take(largest, true, link.now).kind == Kind::answered);
        REQUIRE(b.message().size() == largest.size());
        CHECK(std::equal(b.message().end() - 1000, b.message().end(), largest.end() - 1000));
        b.pop_message();
      }
      b.take(ping_between(link.stations[0], b, mtu + 1), true, link.now);
      CHECK(b.message().empty());
    }
  }
}

}  // namespace
}  // namespace urma::test
