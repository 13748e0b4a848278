// SPDX-License-Identifier: Apache-2.0
// The parts of set-up, each alone: TPNs, cookies, the device's paths, the outbox, links.

#include "tests/unit/transport/rtp_parts.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::ArrivedSetup;
using transport::Cookies;
using transport::Peer;
using transport::Tpns;
using transport::Why;

TEST_CASE("a TPN names a channel, or is promised to a peer, but never both") {
  SeededEntropy entropy(1);
  Tpns tpns(4);
  const Tpn bound = tpns.draw(entropy);
  const Tpn promised = tpns.draw(entropy);
  tpns.bind(bound, 3);
  tpns.promise(promised, 2);
  CHECK(tpns.channel(number(bound)) == 3);
  CHECK(tpns.promised_to(number(bound)) == Tpns::none);
  CHECK(tpns.promised_to(number(promised)) == 2);
  CHECK(tpns.channel(number(promised)) !=
        Tpns::none);  // taken, although it is not the index of a channel
  CHECK(tpns.channel(number(promised)) >= 1u << 31);
  CHECK(tpns.channel(0) == Tpns::none);
  tpns.release(promised);
  CHECK(tpns.promised_to(number(promised)) == Tpns::none);
  CHECK(tpns.channel(number(promised)) == Tpns::none);
}

TEST_CASE("a cookie is valid for 4 to 8 s, only for its address and its OPEN") {
  SeededEntropy entropy(1);
  const Cookies cookies(entropy);
  const Addresses addresses;
  SetupMessage open;
  open.from_tpn = 7;
  open.from_life = 8;
  open.attempt = 9;
  const Endpoint from = host(2);
  const auto at = [&](const Endpoint& place, Time now) {
    return ArrivedSetup{.addresses = addresses, .message = open, .from = place, .now = now};
  };
  const Time made(40s);
  CHECK_FALSE(cookies.holds(at(from, made)));
  open.cookie = cookies.make(at(from, made));
  CHECK(open.cookie != 0);
  CHECK(cookies.holds(at(from, made)));
  CHECK(cookies.holds(at(from, made + 7999ms)));
  CHECK_FALSE(cookies.holds(at(from, made + 8s)));
  CHECK_FALSE(cookies.holds(at(host(3), made)));
  CHECK_FALSE(cookies.holds(at({from.address, 5}, made)));
  for (const auto spoil :
       {+[](SetupMessage& m) { ++m.from_tpn; }, +[](SetupMessage& m) { ++m.from_life; },
        +[](SetupMessage& m) { ++m.attempt; }}) {
    const SetupMessage good = open;
    spoil(open);
    CHECK_FALSE(cookies.holds(at(from, made)));
    open = good;
  }
  const Cookies of_another_device(entropy);
  CHECK_FALSE(of_another_device.holds(at(from, made)));
}

TEST_CASE("an address that leaves the list stays usable until it is closed") {
  RtpParts parts(2);
  transport::OwnPaths& paths = parts.own_paths;
  paths.totals()[0].sent = paths.totals()[1].sent = 5;
  PathList list = paths.current();
  list.endpoints[0] = {};
  list.set(2, host(31));
  paths.lead(list);
  CHECK(paths.current().number == 1);
  CHECK_FALSE(paths.current().there(0));
  CHECK(paths.usable().there(0));
  CHECK(paths.first() == host(11));
  CHECK(paths.endpoint(2) == host(31));
  CHECK(paths.totals()[1].sent == 5);
  paths.close(0);
  CHECK_FALSE(paths.usable().there(0));
  list.endpoints[1] = host(12);
  paths.lead(list);
  CHECK(paths.current().number == 2);
  CHECK(paths.totals()[1].sent == 0);  // the counters of another address begin at 0
}

TEST_CASE("more addresses of a peer are used to ask it for a channel, but not once there is one") {
  RtpParts parts;
  const std::array also{host(22)};
  Peer& asked = parts.known(2);
  parts.peer_paths.expect(asked, also, parts.now);
  REQUIRE(asked.routes != nullptr);
  CHECK(asked.routes->count() == 2);
  Peer& linked = parts.linked(3);
  REQUIRE(linked.routes == nullptr);
  parts.peer_paths.expect(linked, also, parts.now);
  CHECK(linked.routes == nullptr);
}

TEST_CASE("set-up messages leave in order, and those that find no room are counted") {
  RtpParts parts;
  for (uint32_t i = 0; i < transport::SetupOutbox::capacity + 3; ++i) {
    CHECK(parts.outbox.may_ask() == (i < transport::SetupOutbox::capacity / 2));
    SetupMessage message = parts.outbox.ours(SetupType::closed);
    message.attempt = i;
    parts.outbox.push({.to = host(2), .addresses = {}, .message = message});
  }
  CHECK(parts.counters.setup_unsent == 3);
  const auto sent = parts.sent();
  REQUIRE(sent.size() == transport::SetupOutbox::capacity);
  for (uint32_t i = 0; i < sent.size(); ++i) CHECK(sent[i].attempt == i);
  CHECK(parts.counters.setup_sent == sent.size());
  CHECK_FALSE(parts.outbox.waits());
  CHECK(parts.outbox.may_ask());
}

TEST_CASE("a message for a path that was closed does not leave") {
  RtpParts parts(2);
  parts.outbox.push(
      {.to = host(2), .addresses = {}, .message = parts.outbox.ours(SetupType::closed), .path = 1});
  parts.own_paths.close(1);
  CHECK(parts.sent().empty());
  CHECK(parts.counters.setup_unsent == 1);
  CHECK(parts.counters.setup_sent == 0);
}

TEST_CASE("an answer names the sender and its attempt, and RESETs are limited to ten in 10 ms") {
  RtpParts parts;
  SetupMessage question;
  question.from_life = 3;
  question.from_tpn = 4;
  question.attempt = 5;
  parts.outbox.answer(parts.arrived(question), parts.outbox.ours(SetupType::closed));
  const SetupMessage answer = parts.only_sent(SetupType::closed);
  CHECK(answer.to_life == 3);
  CHECK(answer.to_tpn == 4);
  CHECK(answer.attempt == 5);
  CHECK(answer.from_life == RtpParts::our_life);

  for (int i = 0; i < 12; ++i) parts.outbox.reset({}, host(2), 0, parts.now);
  CHECK(parts.sent().size() == 10);
  CHECK(parts.counters.setup_unsent == 2);
  parts.outbox.reset({}, host(2), 0, parts.now + 10ms);
  CHECK(parts.sent().size() == 1);
}

TEST_CASE("a link is made, found by the fields of a message, and ended completely") {
  RtpParts parts;
  Peer& peer = parts.linked(2);
  const PeerId id = parts.peers.id_of(peer);
  REQUIRE(peer.channel != nullptr);
  CHECK(parts.sink.ups == 1);
  CHECK(parts.counters.channels_made == 1);
  SetupMessage names;
  names.to_tpn = number(peer.tpn);
  names.from_tpn = 77;
  CHECK(parts.medium.named(names) == peer.channel);
  CHECK(parts.medium.named(names, host(2)) == peer.channel);
  CHECK(parts.medium.named(names, host(3)) == nullptr);
  CHECK(parts.medium.meant(parts.arrived(names, 3)) == nullptr);
  CHECK(parts.counters.wrong_source == 1);
  names.from_tpn = 78;
  CHECK(parts.medium.meant(parts.arrived(names)) == nullptr);
  CHECK(parts.counters.unknown_channel == 1);

  parts.peers.begin_goodbye(peer, 3);
  parts.links.end_channel(peer, Why::silent, parts.now);
  CHECK(peer.channel == nullptr);
  CHECK(parts.peers.goodbyes() == 0);
  CHECK(parts.medium.size() == 0);
  CHECK(parts.medium.with_tpn(number(peer.tpn)) == nullptr);
  CHECK(parts.sink.downs == std::vector{Why::silent});
  CHECK(parts.news.of(Why::silent).latest == host(2));
  parts.links.end_peer(peer, Why::left, parts.now);
  CHECK(parts.peers.find(id) == nullptr);
}

TEST_CASE("a message of an incarnation ends the others, and a full table ends a peer not needed") {
  RtpParts parts;
  Peer& old = parts.linked(2);
  const PeerId old_id = parts.peers.id_of(old);
  Peer& living = parts.known(2);
  parts.links.bind_life(living, Incarnation(9), parts.now);
  CHECK(parts.peers.find(old_id) == nullptr);
  CHECK(parts.sink.downs == std::vector{Why::restarted});
  CHECK(parts.medium.size() == 0);

  parts.linked(3);
  parts.linked(4);
  parts.linked(5);
  CHECK(parts.peers.full());
  CHECK(parts.links.create(host(6).address, host(6), {}, parts.now) != nullptr);
  CHECK(parts.sink.downs.back() == Why::left);
  // The new peer has no channel either, so it is the next to be forgotten; peers with a channel
  // never are.
  CHECK(parts.links.create(host(7).address, host(7), {}, parts.now) != nullptr);
  CHECK(parts.medium.size() == 3);
}

TEST_CASE("a channel in use keeps its TPN when the request for another one fails") {
  RtpParts parts;
  Peer& peer = parts.linked(2);
  const Tpn in_use = peer.tpn;
  peer.doubted_tpn = in_use;
  peer.doubted_psn = peer.first_psn;
  peer.opening = true;
  peer.tpn = parts.tpns.draw(parts.entropy);
  parts.tpns.promise(peer.tpn, parts.peers.index_of(peer));
  const Tpn asked = peer.tpn;
  parts.links.cancel_opening(peer);
  CHECK(peer.tpn == in_use);
  CHECK(parts.tpns.channel(number(asked)) == Tpns::none);
  CHECK(parts.medium.with_tpn(number(in_use)) == peer.channel);
}

}  // namespace
}  // namespace urma::test
