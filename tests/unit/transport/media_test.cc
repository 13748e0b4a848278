// SPDX-License-Identifier: Apache-2.0
// Tests the two media, the ingress of each, and datagrams, without a simulator: there is one
// device, and the test plays its peers.

#include "tests/unit/transport/fake_ways.h"
#include "tests/unit/transport/noted_source.h"
#include "tests/unit/transport/rtp_parts.h"
#include "transport/ctp_ingress.h"
#include "transport/rtp_ingress.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::CtpIngress;
using transport::CtpMedium;
using transport::Datagrams;
using transport::Peer;
using transport::RtpIngress;

struct CtpParts : Parts<CtpMedium> {
  explicit CtpParts(FakeWays& fake) : Parts(settings_for(fake), sink) {}
  static transport::Settings settings_for(FakeWays& ways) {
    transport::Settings out = defaults();
    out.ways = &ways;
    out.idle_timeout = 1s;
    return out;
  }
};

// The ingress of a device, with the parts to which it passes packets.
template <class PartsOfMedium>
struct Incoming : PartsOfMedium {
  template <class... More>
  explicit Incoming(More&&... more)
      : PartsOfMedium(std::forward<More>(more)...),
        setup(this->common(), this->setup_parts()),
        datagrams(this->common(), this->peers, this->own_paths, this->medium) {}
  transport::Ingress::Uses uses() {
    return {.links = this->links, .setup = setup, .datagrams = datagrams};
  }
  transport::Setup setup;
  Datagrams datagrams;
};

struct Kind {
  bool last = true;
  bool fake = false;
};
fuzz::Packet data_for(const Peer& peer, uint32_t psn, uint8_t from = 2, const Kind& kind = {}) {
  fuzz::Bytes bytes(Rtph::size + 16);
  const Rtph header{.last = kind.last,
                    .opcode = static_cast<uint8_t>(TpOpcode::data),
                    .source = 77,
                    .destination = number(peer.tpn),
                    .fake = kind.fake,
                    .psn = psn};
  header.emit(HeaderBytes<Rtph::size>(bytes.data(), Rtph::size));
  return fuzz::sealed(std::move(bytes), host(from), host(1));
}

struct RtpIncoming : Incoming<RtpParts> {
  RtpIncoming() : ingress(common(), uses(), own_paths, peers, tpns, medium) {}
  void receive(const fuzz::Packet& packet) {
    const RxFrame frame = fuzz::received(packet);
    ingress.receive({&frame, 1}, now);
  }
  RtpIngress ingress;
};

TEST_CASE("RTP: a packet goes to the channel that its TPN names, from its peer only") {
  RtpIncoming parts;
  Peer& peer = parts.linked(2);
  parts.receive(data_for(peer, 0));
  REQUIRE(parts.sink.accepted.size() == 1);
  CHECK(parts.sink.accepted[0].peer == parts.peers.id_of(peer));
  CHECK(parts.sink.bytes[0].size() == 16);
  CHECK(peer.spoke);
  parts.receive(data_for(peer, 0));
  CHECK(parts.counters.duplicates == 1);
  parts.receive(data_for(peer, 1, 3));
  CHECK(parts.counters.wrong_source == 1);
  fuzz::Packet spoilt = data_for(peer, 1);
  spoilt.bytes[Rtph::size] ^= std::byte{1};
  parts.receive(spoilt);
  CHECK(parts.counters.bad_icrc == 1);
  spoilt.bytes.resize(8);
  parts.receive(spoilt);
  CHECK(parts.counters.malformed == 1);
  parts.sink.room = false;
  parts.receive(data_for(peer, 1));
  CHECK(parts.counters.no_memory == 1);
  CHECK(parts.sink.accepted.size() == 1);
}

TEST_CASE("RTP: data for an unknown TPN is answered with a RESET, data for a promised one is not") {
  RtpIncoming parts;
  Peer nobody;
  nobody.tpn = Tpn(9);
  parts.receive(data_for(nobody, 0));
  CHECK(parts.setup.outbox().waits());
  CHECK(parts.counters.unknown_channel == 1);
  RtpIncoming asking;
  Peer& peer = asking.known(2);
  peer.tpn = asking.tpns.draw(asking.entropy);
  asking.tpns.promise(peer.tpn, asking.peers.index_of(peer));
  asking.receive(data_for(peer, 0));
  CHECK(asking.counters.unknown_channel == 1);
  CHECK_FALSE(asking.setup.outbox().waits());
}

TEST_CASE("RTP: the packets of a burst are delivered in order") {
  RtpIncoming parts;
  Peer& peer = parts.linked(2);
  std::vector<fuzz::Packet> packets;
  for (uint32_t psn = 0; psn < 133; ++psn) packets.push_back(data_for(peer, psn));
  std::vector<RxFrame> frames;
  for (const fuzz::Packet& packet : packets) frames.push_back(fuzz::received(packet));
  parts.ingress.receive(frames, parts.now);
  REQUIRE(parts.sink.accepted.size() == packets.size());
  for (const transport::Received& received : parts.sink.accepted) CHECK(received.in_order);
}

TEST_CASE("RTP: a packet that is taken by a fast path has arrived, and is taken once") {
  RtpIncoming parts;
  Peer& peer = parts.linked(2);
  parts.sink.room = false;
  parts.sink.expects = true;
  parts.receive(data_for(peer, 0));
  parts.receive(data_for(peer, 0));
  CHECK(parts.sink.expected == 1);
  CHECK(parts.counters.duplicates == 1);
  // Filler, and packets that others of their slice follow, are not expected.
  parts.receive(data_for(peer, 1, 2, {.fake = true}));
  parts.receive(data_for(peer, 1, 2, {.last = false}));
  CHECK(parts.sink.expected == 1);
  CHECK(parts.counters.no_memory == 2);
  parts.sink.expects = false;
  parts.sink.continues = true;
  parts.receive(data_for(peer, 1, 2, {.fake = true}));
  CHECK(parts.counters.no_memory == 3);
  for (int i = 0; i < 2; ++i) parts.receive(data_for(peer, 1, 2, {.last = false}));
  CHECK(parts.sink.continued == 1);
  CHECK(parts.counters.duplicates == 2);
  parts.sink.continues = false;
  parts.sink.room = true;
  parts.receive(data_for(peer, 2));
  CHECK(parts.sink.accepted.size() == 1);
}

TEST_CASE("RTP: within a burst each packet goes to its own channel") {
  RtpIncoming parts;
  Peer& one = parts.linked(2);
  Peer& other = parts.linked(3);
  const std::vector<fuzz::Packet> packets = {
      data_for(one, 0),      data_for(one, 1),    data_for(other, 0, 3),
      data_for(one, 2),      data_for(one, 3, 3),  // from the address of the other peer
      data_for(other, 1, 3), data_for(one, 4)};
  std::vector<RxFrame> frames;
  for (const fuzz::Packet& packet : packets) frames.push_back(fuzz::received(packet));
  parts.ingress.receive(frames, parts.now);
  CHECK(parts.counters.wrong_source == 1);
  REQUIRE(parts.sink.accepted.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    const Peer& sender = i == 2 || i == 4 ? other : one;
    CHECK(parts.sink.accepted[i].peer == parts.peers.id_of(sender));
  }
}

TEST_CASE("RTP: a source is accepted if its EID matches its address, or one of its paths") {
  RtpParts parts(2);
  CHECK(parts.medium.may_come_from(host(2).address, host(2)));
  CHECK_FALSE(parts.medium.may_come_from(host(2).address, host(3)));
  Eid drawn;
  drawn.bytes[0] = std::byte{0xfd};
  drawn.bytes[15] = std::byte{1};
  CHECK(parts.medium.may_come_from(drawn, host(3)));
  Peer& peer = parts.known(2);
  PathList theirs;
  theirs.set(0, host(2));
  theirs.set(1, host(12));
  parts.peer_paths.learn(peer, theirs, host(2), 0, parts.now);
  CHECK(parts.medium.may_come_from(host(2).address, host(12)));
}

TEST_CASE("RTP: after unanswered OPENs half of the MTU is proposed, and at least 1024") {
  transport::Settings settings = RtpParts::defaults();
  settings.mtu = 8192;
  struct Large : Parts<transport::RtpMedium> {
    explicit Large(const transport::Settings& with) : Parts(with, own_paths) {}
  } parts(settings);
  Peer& peer = parts.known(2);
  CHECK(parts.medium.mtu_to_ask(peer) == 8192);
  peer.tries = 3;
  CHECK(parts.medium.mtu_to_ask(peer) == 4096);
  peer.tries = 1000;
  CHECK(parts.medium.mtu_to_ask(peer) == 1024);
  CHECK(parts.medium.as_large_as(1024) > 1024);
}

TEST_CASE(
    "RTP: a RESET has an effect only if it names the PSN of a packet that may have been sent") {
  RtpParts parts;
  Peer& peer = parts.linked(2);
  SetupMessage reset;
  reset.echoed_psn = peer.first_psn;
  CHECK_FALSE(parts.medium.may_have_sent(*peer.channel, reset));  // no packet was sent yet
  REQUIRE(peer.channel->offer({1, 0}, transport::Class::request, 100));
  NotedSource source;
  TxFrame* frame = nullptr;
  REQUIRE(parts.frames.lend({&frame, 1}) == 1);
  REQUIRE(parts.medium.fill(source, {&frame, 1}, parts.now) == 1);
  CHECK(parts.medium.may_have_sent(*peer.channel, reset));
  CHECK_FALSE(parts.medium.idle());
  reset.echoed_psn = peer.first_psn + 1;
  CHECK_FALSE(parts.medium.may_have_sent(*peer.channel, reset));
}

fuzz::Bytes compact(Ctph::Opcode opcode, size_t payload) {
  fuzz::Bytes bytes(Ctph::size + payload);
  Ctph{.opcode = opcode}.emit(HeaderBytes<Ctph::size>(bytes.data(), Ctph::size));
  return bytes;
}

struct CtpIncoming : Incoming<CtpParts> {
  explicit CtpIncoming(FakeWays& ways) : Incoming(ways), ingress(common(), uses(), medium) {}
  void receive(const fuzz::Bytes& bytes, uint8_t from = 2) {
    const Endpoint at = host(from);
    const RxFrame frame{
        .data = bytes.data(), .bytes = static_cast<uint32_t>(bytes.size()), .from = &at};
    ingress.receive({&frame, 1}, now);
  }
  CtpIngress ingress;
};

TEST_CASE("CTP: a packet goes to the channel of its source address") {
  FakeWays ways;
  CtpIncoming parts(ways);
  Peer& second = parts.linked(2);
  Peer& third = parts.linked(3);
  for (const auto& [from, peer] : {std::pair{2, &second}, {3, &third}, {2, &second}}) {
    parts.receive(compact(Ctph::Opcode::packet, 20), static_cast<uint8_t>(from));
    CHECK(parts.sink.accepted.back().peer == parts.peers.id_of(*peer));
    CHECK(parts.sink.accepted.back().bytes.size() == 20);
  }
  parts.receive(compact(Ctph::Opcode::filler, 0));  // a keep-alive
  CHECK(parts.sink.accepted.size() == 3);
  parts.receive(compact(Ctph::Opcode::packet, 20), 4);
  CHECK(parts.counters.unknown_channel == 1);
  CHECK(parts.setup.outbox().waits());  // a RESET
  parts.receive({});
  CHECK(parts.counters.malformed == 1);
  // Once the channel of an address has ended, it is no longer found.
  parts.links.end_channel(second, transport::Why::silent, parts.now);
  parts.receive(compact(Ctph::Opcode::packet, 20));
  CHECK(parts.counters.unknown_channel == 2);
  CHECK(parts.sink.accepted.size() == 3);
}

TEST_CASE("CTP: decisions read a copy of the headers that the sender cannot change") {
  FakeWays ways;
  CtpIncoming parts(ways);
  parts.linked(2);
  fuzz::Bytes bytes = compact(Ctph::Opcode::packet, 500);
  parts.receive(bytes);
  const transport::Received& received = parts.sink.accepted.at(0);
  CHECK(received.bytes.data() == bytes.data() + Ctph::size);
  CHECK((received.head.data() < bytes.data() || received.head.data() >= bytes.data() + 500));
  CHECK(received.head.size() == 128 - Ctph::size);
}

TEST_CASE("CTP: no packet leaves to an address while a peer there is asked for a channel") {
  FakeWays ways;
  CtpParts parts(ways);
  Peer& peer = parts.linked(2);
  REQUIRE(peer.channel->offer({1, 0}, transport::Class::request, 10));
  NotedSource source;
  TxFrame* frame = nullptr;
  REQUIRE(parts.frames.lend({&frame, 1}) == 1);
  peer.opening = true;
  parts.medium.asking_changed(host(2));
  CHECK(parts.medium.fill(source, {&frame, 1}, parts.now) == 0);
  peer.opening = false;
  parts.medium.asking_changed(host(2));
  CHECK(parts.medium.fill(source, {&frame, 1}, parts.now) == 1);
}

TEST_CASE("CTP: a set-up message waits for room, unless its receiver has gone") {
  FakeWays ways;
  CtpParts parts(ways);
  const auto leaves = [&] {
    parts.outbox.push(
        {.to = host(2), .addresses = {}, .message = parts.outbox.ours(SetupType::closed)});
    return parts.sent().size() == 1;
  };
  CHECK(leaves());
  ways.room = false;
  CHECK_FALSE(leaves());
  ways.now.gone = true;
  CHECK(leaves());
  CHECK_FALSE(parts.medium.no_room_at(host(2)));
  ways.now.no_room = true;
  CHECK(parts.medium.no_room_at(host(2)));
  // A window proves the address of its owner, and idle channels over it are not closed.
  CHECK(parts.medium.may_come_from(host(2).address, host(2)));
  CHECK_FALSE(parts.medium.may_come_from(host(3).address, host(2)));
  CHECK(parts.medium.timers().closes_at(*parts.linked(2).channel) == never);
}

TEST_CASE("a datagram arrives as it was sent, for one device, and creates no peer") {
  RtpIncoming from;
  RtpIncoming to;  // the same address: the test delivers what the first one sends
  Peer& self = from.known(1);
  transport::Channel* const channel = from.datagrams.to(self);
  constexpr uint32_t bytes = Btah::size + Mtetah::size + 8;
  std::byte* const packet = channel->begin(bytes);
  REQUIRE(packet != nullptr);
  std::memset(packet, 0, bytes);
  const Mtetah target{.target = 40};
  target.emit(HeaderBytes<Mtetah::size>(packet + Btah::size, Mtetah::size));
  channel->end();
  TxFrame* frame = nullptr;
  REQUIRE(from.frames.lend({&frame, 1}) == 1);
  REQUIRE(from.datagrams.fill({&frame, 1}, 0) == 1);
  CHECK_FALSE(from.datagrams.waits());
  to.receive(fuzz::gathered(*frame, host(1)));
  REQUIRE(to.sink.accepted.size() == 1);
  CHECK(to.sink.accepted[0].datagram);
  CHECK(to.sink.bytes[0].size() == bytes);
  CHECK_FALSE(to.sink.accepted[0].peer);
  CHECK(to.peers.size() == 0);
}

}  // namespace
}  // namespace urma::test
