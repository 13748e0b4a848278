// SPDX-License-Identifier: Apache-2.0
// Openings, Admission, Closings and PathMessages, each alone; the test plays the peer.

#include "tests/unit/transport/rtp_parts.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Admission;
using transport::Closings;
using transport::Openings;
using transport::PathMessages;
using transport::Peer;
using transport::Why;

struct Opening : RtpParts {
  explicit Opening(uint8_t paths = 0)
      : RtpParts(paths), openings(common(), setup_parts(), outbox) {}
  // Returns a valid answer of the peer to this OPEN.
  static SetupMessage to(const SetupMessage& open, SetupType type) {
    SetupMessage out = accept();
    out.type = type;
    out.to_tpn = open.from_tpn;
    out.attempt = open.attempt;
    return out;
  }
  Openings openings;
};

TEST_CASE("a channel is asked for once, and made by the ACCEPT") {
  Opening parts;
  Peer& peer = parts.known(2);
  CHECK(parts.openings.channel(peer, parts.now) == nullptr);
  CHECK(parts.openings.channel(peer, parts.now) == nullptr);
  const SetupMessage open = parts.only_sent(SetupType::open);
  CHECK(parts.tpns.promised_to(open.from_tpn) == parts.peers.index_of(peer));
  parts.openings.handle_accept(parts.arrived(Opening::to(open, SetupType::accept)));
  REQUIRE(peer.channel != nullptr);
  CHECK(parts.openings.channel(peer, parts.now) == peer.channel);
  CHECK(number(peer.channel->remote()) == 77);
  CHECK(peer.life == Incarnation(Opening::their_life));
  CHECK_FALSE(peer.opening);
}

TEST_CASE("OPENs are repeated at growing intervals, with a smaller MTU, and finally abandoned") {
  Opening parts;
  Peer& peer = parts.known(2);
  parts.openings.begin(peer, parts.now);
  std::vector<SetupMessage> opens = parts.sent();
  const Time begun = parts.now;
  while (peer.opening && parts.now < begun + 10s) {
    parts.now = std::max(parts.peers.next_deadline(), parts.now + 1ms);
    uint32_t due[4];
    if (parts.peers.take_due(parts.now, due) > 0) parts.openings.handle_timer(peer, parts.now);
    for (const SetupMessage& open : parts.sent()) opens.push_back(open);
  }
  CHECK(parts.now - begun >= 2s);
  CHECK(parts.now - begun < 2300ms);
  CHECK(opens.size() > 10);
  for (const SetupMessage& open : opens) CHECK(open.attempt == opens[0].attempt);
  CHECK(parts.sink.downs == std::vector{Why::unreachable});
  CHECK(peer.given_up);
  CHECK(parts.tpns.channel(opens[0].from_tpn) == transport::Tpns::none);
}

// A device whose controllers react to loss alone sends what versions without reports sent.
TEST_CASE("the OPEN of a device with default options has the same features as ever") {
  Opening parts;
  parts.openings.begin(parts.known(2), parts.now);
  CHECK(parts.only_sent(SetupType::open).features == 0x1b);
}

TEST_CASE("a RETRY is answered immediately once for each OPEN that the timer sent") {
  Opening parts;
  Peer& peer = parts.known(2);
  parts.openings.begin(peer, parts.now);
  SetupMessage retry = Opening::to(parts.only_sent(SetupType::open), SetupType::retry);
  retry.cookie = 5;
  parts.openings.handle_retry(parts.arrived(retry));
  CHECK(parts.only_sent(SetupType::open).cookie == 5);
  parts.openings.handle_retry(parts.arrived(retry));
  CHECK(parts.counters.setup_late == 1);
  retry.cookie = 6;
  parts.openings.handle_retry(parts.arrived(retry));
  CHECK(parts.sent().empty());  // the timer's next OPEN carries it
  parts.openings.handle_timer(peer, parts.now + 10ms);
  CHECK(parts.only_sent(SetupType::open).cookie == 6);
}

TEST_CASE("each REFUSE has its consequence") {
  const auto refused = [](Opening& parts, Peer& peer, SetupReason reason) {
    parts.openings.begin(peer, parts.now);
    SetupMessage refuse = Opening::to(parts.only_sent(SetupType::open), SetupType::refuse);
    refuse.reason = reason;
    parts.openings.handle_refuse(parts.arrived(refuse));
  };
  Opening parts;
  Peer& version = parts.known(2);
  refused(parts, version, SetupReason::version);
  CHECK(version.why_not == Why::refused);
  CHECK(parts.sink.downs == std::vector{Why::refused});
  Opening full;
  Peer& no_room = full.known(2);
  refused(full, no_room, SetupReason::no_resources);
  CHECK(no_room.why_not == Why::no_room);
  CHECK(no_room.opening);  // asked again
  full.openings.handle_timer(no_room, full.now + 10ms);
  CHECK(no_room.why_not == Why::no_room);  // the reason of the REFUSE is kept
  Opening other;
  Peer& restarted = other.known(2, 9);
  const PeerId id = other.peers.id_of(restarted);
  refused(other, restarted, SetupReason::restarted);
  CHECK(other.peers.find(id) == nullptr);
  CHECK(other.sink.downs == std::vector{Why::restarted});
}

TEST_CASE("where a peer was, a process of another EID ends it by a REFUSE, and only there") {
  Opening parts;
  Peer& peer = parts.known(2, 9);
  const PeerId id = parts.peers.id_of(peer);
  parts.openings.begin(peer, parts.now);
  const SetupMessage open = parts.only_sent(SetupType::open);
  SetupMessage refuse = Opening::to(open, SetupType::refuse);
  const auto arrive = [&](uint8_t from, SetupReason reason) {
    refuse.reason = reason;
    const transport::ArrivedSetup usual = parts.arrived(refuse, from);
    auto addresses = usual.addresses;
    addresses.source = host(3).address;
    parts.openings.handle_refuse({.addresses = addresses,
                                  .message = refuse,
                                  .from = usual.from,
                                  .path = usual.path,
                                  .now = usual.now});
  };
  arrive(3, SetupReason::restarted);  // from another address
  arrive(2, SetupReason::version);
  CHECK(parts.counters.wrong_source == 2);
  parts.openings.handle_accept(parts.arrived(Opening::to(open, SetupType::accept), 3));
  CHECK(parts.counters.wrong_source == 3);
  CHECK((parts.peers.find(id) == &peer && peer.opening));
  arrive(2, SetupReason::restarted);
  CHECK(parts.peers.find(id) == nullptr);
  CHECK(parts.sink.downs == std::vector{Why::restarted});
}

TEST_CASE("an ACCEPT of another incarnation ends the one that was asked") {
  Opening parts;
  Peer& peer = parts.known(2, Opening::their_life + 1);
  const PeerId id = parts.peers.id_of(peer);
  parts.openings.begin(peer, parts.now);
  const SetupMessage open = parts.only_sent(SetupType::open);
  parts.openings.handle_accept(parts.arrived(Opening::to(open, SetupType::accept)));
  CHECK(parts.peers.find(id) == nullptr);
  CHECK(parts.medium.size() == 0);
}

TEST_CASE("the channel of a device to itself needs no message") {
  Opening parts;
  Peer& self = parts.known(1);
  CHECK(parts.openings.channel(self, parts.now) != nullptr);
  CHECK(self.channel->local() == self.channel->remote());
  CHECK(parts.sent().empty());
  Peer& earlier = parts.known(1, 3);  // an incarnation that has ended
  CHECK(parts.openings.channel(earlier, parts.now) == nullptr);
  CHECK(parts.sink.downs.back() == Why::restarted);
}

TEST_CASE("a channel is replaced if another mode of retransmission is asked for, and only then") {
  Opening parts;
  Peer& peer = parts.linked(2);
  parts.openings.choose(peer, parts.settings.retransmission, parts.now);
  CHECK_FALSE(peer.opening);
  Retransmission other = parts.settings.retransmission;
  other.window_packets /= 2;
  parts.openings.choose(peer, other, parts.now);
  CHECK(peer.opening);
  CHECK(parts.only_sent(SetupType::open).receive_window == other.window_packets);
  CHECK(peer.channel != nullptr);
}

struct Admitting : RtpParts {
  Admitting() : admission(common(), setup_parts(), outbox) {}
  static SetupMessage open(uint32_t attempt = 1) {
    SetupMessage out = accept();
    out.type = SetupType::open;
    out.to_life = 0;
    out.to_tpn = 0;
    out.attempt = attempt;
    out.from_tpn = 100 + attempt;
    return out;
  }
  void handle(const SetupMessage& message, uint8_t from = 2) {
    admission.handle_open(arrived(message, from));
  }
  Admission admission;
};

TEST_CASE("the ACCEPT of an OPEN without an offer has the same features as ever") {
  Admitting parts;
  parts.handle(Admitting::open());
  CHECK(parts.only_sent(SetupType::accept).features == 0x1b);
}

TEST_CASE("a repeated OPEN is accepted again with the same answer") {
  Admitting parts;
  parts.handle(Admitting::open());
  const SetupMessage first = parts.only_sent(SetupType::accept);
  CHECK(parts.medium.size() == 1);
  CHECK(parts.peers.half_open() == 1);
  SetupMessage again = Admitting::open();
  again.mtu_log2 = 12;
  parts.handle(again);
  CHECK(parts.only_sent(SetupType::accept) == first);
  CHECK(parts.medium.size() == 1);
}

TEST_CASE("an OPEN that could end a channel must bring back its cookie") {
  Admitting parts;
  Peer& peer = parts.linked(2);
  const transport::PacketChannel* const before = peer.channel;
  SetupMessage open = Admitting::open();
  parts.handle(open);
  const SetupMessage retry = parts.only_sent(SetupType::retry);
  CHECK(peer.channel == before);
  open.cookie = retry.cookie;
  peer.number = 0;
  parts.handle(open);
  parts.only_sent(SetupType::accept);
  CHECK(parts.sink.downs.front() == Why::silent);
  CHECK(parts.medium.size() == 1);
}

TEST_CASE("when both ends ask, the OPEN of the lower EID is answered") {
  Admitting parts;
  Peer& peer = parts.known(2, Admitting::their_life);
  peer.tpn = parts.tpns.draw(parts.entropy);
  parts.tpns.promise(peer.tpn, parts.peers.index_of(peer));
  peer.opening = true;
  parts.handle(Admitting::open());
  CHECK(parts.counters.setup_declined == 1);
  CHECK(parts.sent().empty());
  CHECK(parts.medium.size() == 0);
}

TEST_CASE("a full device refuses, and probes the peer that is silent for longest") {
  Admitting parts;
  for (uint8_t number = 2; number < 6; ++number) parts.linked(number);
  parts.handle(Admitting::open(), 9);
  CHECK(parts.only_sent(SetupType::refuse).reason == SetupReason::no_resources);
  CHECK(parts.medium.wants_to_send());  // a question to the silent peer
  CHECK(parts.medium.size() == 4);
}

TEST_CASE("a half-open peer that times out loses its channel, and its OPEN is not stale") {
  Admitting parts;
  parts.handle(Admitting::open());
  parts.sent();
  Peer& peer = *parts.peers.find(host(2).address, host(2), {});
  parts.admission.handle_timer(peer, parts.now);
  CHECK(peer.channel == nullptr);
  CHECK(parts.peers.half_open() == 0);
  parts.handle(Admitting::open());
  parts.only_sent(SetupType::accept);
}

struct Closing : RtpParts {
  explicit Closing(Duration idle_timeout = {})
      : RtpParts(0, idle_timeout), closings(common(), setup_parts(), outbox) {}
  Closings closings;
};

TEST_CASE("a goodbye ends when the peer confirms it, or after three tries") {
  Closing parts;
  Peer& answers = parts.linked(2);
  Peer& silent = parts.linked(3);
  CHECK_FALSE(parts.closings.closed());
  parts.closings.say_goodbye(parts.now);
  const auto closes = parts.sent();
  REQUIRE(closes.size() == 2);
  CHECK(closes[0].reason == SetupReason::leaving);
  parts.closings.handle_closed(parts.arrived(parts.from(answers, SetupType::closed)));
  CHECK(parts.peers.goodbyes() == 1);
  for (int tries = 1; tries < 3; ++tries) {
    parts.closings.handle_timer(silent, parts.now);
    parts.only_sent(SetupType::close);
    CHECK_FALSE(parts.closings.closed());
  }
  parts.closings.handle_timer(silent, parts.now);
  CHECK(parts.sent().empty());
  CHECK(parts.closings.closed());
}

TEST_CASE("an idle channel is closed if the peer agrees, and only with its cookie") {
  Closing parts(100ms);
  Peer& peer = parts.linked(2);
  CHECK(parts.medium.timers().closes_at(*peer.channel) == parts.now + 100ms);
  parts.closings.ask(peer, parts.now + 100ms);
  CHECK(parts.medium.timers().closes_at(*peer.channel) == never);  // the peer is being asked
  const SetupMessage close = parts.only_sent(SetupType::close);
  CHECK(close.reason == SetupReason::idle);
  SetupMessage closed = parts.from(peer, SetupType::closed);
  closed.cookie = close.cookie + 2;
  parts.closings.handle_closed(parts.arrived(closed));
  CHECK(peer.channel != nullptr);
  CHECK(parts.counters.setup_late == 1);
  closed.cookie = close.cookie;
  parts.closings.handle_closed(parts.arrived(closed));
  CHECK(peer.channel == nullptr);
  CHECK(parts.sink.downs == std::vector{Why::idle});
}

TEST_CASE("an idle channel ends without an answer to CLOSE, unless data is offered meanwhile") {
  Closing parts(100ms);
  Peer& silent = parts.linked(2);
  Peer& used = parts.linked(3);
  parts.closings.ask(silent, parts.now);
  parts.closings.ask(used, parts.now);
  REQUIRE(used.channel->offer({1, 0}, transport::Class::request, 10));
  for (int tries = 0; tries < 3; ++tries) {
    if (silent.closes > 0) parts.closings.handle_timer(silent, parts.now);
    if (used.closes > 0) parts.closings.handle_timer(used, parts.now);
  }
  CHECK(silent.channel == nullptr);
  CHECK(used.channel != nullptr);
  CHECK(used.closes == 0);
}

TEST_CASE("a CLOSE ends the channel or the peer, by its reason") {
  Closing parts;
  Peer& peer = parts.linked(2);
  SetupMessage close = parts.from(peer, SetupType::close);
  close.reason = SetupReason::idle;
  REQUIRE(peer.channel->offer({1, 0}, transport::Class::request, 10));
  parts.closings.handle_close(parts.arrived(close));
  CHECK(parts.counters.setup_declined == 1);  // this end needs the channel
  close.reason = SetupReason::leaving;
  const PeerId id = parts.peers.id_of(peer);
  parts.closings.handle_close(parts.arrived(close));
  parts.only_sent(SetupType::closed);
  CHECK(parts.peers.find(id) == nullptr);
  CHECK(parts.sink.downs == std::vector{Why::left});
  parts.closings.handle_close(parts.arrived(close));  // repeated because the answer was lost
  parts.only_sent(SetupType::closed);
}

struct Telling : Opening {
  Telling() : Opening(2), messages(common(), setup_parts(), outbox, openings) {}
  // Makes a peer with a channel that is reached at two addresses and accepts PATHS.
  Peer& with_paths() {
    Peer& peer = known(2, their_life);
    PathList theirs;
    theirs.set(0, host(2));
    theirs.set(1, host(12));
    peer_paths.learn(peer, theirs, host(2), 0, now);
    peer.tpn = tpns.draw(entropy);
    SetupMessage answer = accept();
    answer.features |= feature_new_paths;
    links.make(peer, {.theirs = answer, .mtu = 1024, .first_rtt = 1ms}, now);
    return peer;
  }
  PathMessages messages;
};

TEST_CASE("a changed list of addresses is sent until the peer has noted it") {
  Telling parts;
  Peer& peer = parts.with_paths();
  PathList list = parts.own_paths.current();
  list.set(2, host(31));
  parts.messages.lead(list, parts.now);
  CHECK_FALSE(parts.messages.all_noted());
  parts.messages.tend(peer, parts.now);
  SetupMessage told;
  for (const SetupMessage& message : parts.sent()) {
    if (message.type == SetupType::paths) told = message;
  }
  REQUIRE(told.type == SetupType::paths);
  CHECK(told.paths == parts.own_paths.current());
  SetupMessage noted = parts.from(peer, SetupType::noted);
  noted.cookie = told.cookie + 1;
  parts.messages.handle_noted(parts.arrived(noted));
  CHECK(parts.counters.setup_late == 1);
  noted.cookie = told.cookie;
  parts.messages.handle_noted(parts.arrived(noted));
  CHECK(parts.messages.all_noted());
}

TEST_CASE("a peer that does not accept PATHS is asked for another channel instead") {
  Telling parts;
  Peer& peer = parts.with_paths();
  peer.notes_paths = false;
  PathList list = parts.own_paths.current();
  list.set(2, host(31));
  parts.messages.lead(list, parts.now);
  CHECK(peer.opening);
  CHECK(parts.only_sent(SetupType::open).paths == parts.own_paths.current());
}

TEST_CASE("a question is answered on its channel only, and an answer proves the path") {
  Telling parts;
  Peer& peer = parts.with_paths();
  parts.messages.handle_question(parts.arrived(parts.from(peer, SetupType::question), 3));
  CHECK(parts.counters.wrong_source == 1);
  SetupMessage question = parts.from(peer, SetupType::question);
  question.cookie = 9;
  question.attempt = 1;
  parts.messages.handle_question(parts.arrived(question));
  const SetupMessage answer = parts.only_sent(SetupType::answer);
  CHECK(answer.cookie == 9);
  CHECK(answer.attempt == 1);

  CHECK_FALSE((*peer.routes)[1].usable);
  parts.messages.tend(peer, parts.now);
  for (const SetupMessage& asked : parts.sent()) {
    if (asked.type != SetupType::question || asked.attempt != 1) continue;
    SetupMessage reply = parts.from(peer, SetupType::answer);
    reply.attempt = asked.attempt;
    reply.cookie = asked.cookie;
    parts.messages.handle_answer(parts.arrived(reply, 12));  // arrives on path 0, not on 1
    CHECK(parts.counters.wrong_source == 2);
    const Endpoint from = host(12);
    const Addresses addresses{.source = host(2).address, .destination = {}};
    parts.messages.handle_answer({.addresses = addresses,
                                  .message = reply,
                                  .from = from,
                                  .path = 1,
                                  .now = parts.now + 1ms});
  }
  CHECK((*peer.routes)[1].usable);
}

TEST_CASE("a newer list of the peer moves its paths and is noted; an older one is only noted") {
  Telling parts;
  Peer& peer = parts.with_paths();
  SetupMessage paths = parts.from(peer, SetupType::paths);
  paths.features |= feature_paths | feature_new_paths;
  paths.paths.set(0, host(3));
  paths.paths.number = 1;
  paths.cookie = 8;
  parts.messages.handle_paths(parts.arrived(paths, 3));
  CHECK(parts.only_sent(SetupType::noted).cookie == 8);
  CHECK(peer.at == host(3));
  CHECK(peer.routes->table().theirs().number == 1);
  paths.paths.set(0, host(2));
  parts.messages.handle_paths(parts.arrived(paths, 3));
  parts.only_sent(SetupType::noted);
  CHECK(peer.at == host(3));
}

}  // namespace
}  // namespace urma::test
