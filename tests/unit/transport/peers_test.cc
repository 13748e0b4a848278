// SPDX-License-Identifier: Apache-2.0
// The table of peers: which peer a message comes from, and which one is forgotten first.

#include "transport/peers.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Peer;
using transport::Peers;

Endpoint at(uint8_t number) { return {ipv4(10, 0, 0, number), ub_port}; }

class Known {
 public:
  static transport::Settings settings() {
    return {.self = at(1), .eid = at(1).address, .peers = 3};
  }
  Peer* make(uint8_t number, uint64_t life) {
    return peers.create(at(number).address, at(number), Incarnation(life));
  }

 private:
  SeededEntropy entropy_{1};

 public:
  Peers peers{settings(), entropy_};
};

TEST_CASE("a peer is found by its EID and its incarnation, if that is known") {
  Known known;
  Peer* const first = known.make(2, 5);
  Peer* const second = known.make(2, 6);
  const auto find = [&](uint64_t life) {
    return known.peers.find(at(2).address, at(2), Incarnation(life));
  };
  CHECK(find(5) == first);
  CHECK(find(6) == second);
  CHECK(find(7) == nullptr);
  CHECK(find(0) == second);  // incarnation unknown: the latest one
  Peer* const unknown = known.make(2, 0);
  CHECK(find(7) == unknown);  // its incarnation may turn out to be 7
  CHECK(known.peers.find(at(3).address, at(3), {}) == nullptr);
}

TEST_CASE("a peer known only by its address gets the EID that answers there") {
  Known known;
  Peer* const nameless = known.peers.create({}, at(2), {});
  CHECK(known.peers.find(at(9).address, at(3), {}) == nullptr);
  CHECK(nameless->eid == Eid{});
  CHECK(known.peers.find(at(9).address, at(2), {}) == nameless);
  CHECK(nameless->eid == at(9).address);
  CHECK(known.peers.find_at(at(2)) == nameless);
  CHECK(known.peers.find_at(at(9)) == nullptr);
}

TEST_CASE("the other incarnations of a peer that is known to run are found") {
  Known known;
  Peer* const old = known.make(2, 5);
  Peer* const living = known.make(2, 6);
  known.make(2, 0);  // it may be the running one
  CHECK(known.peers.other_incarnation_of(*living) == old);
  known.peers.destroy(*old);
  CHECK(known.peers.other_incarnation_of(*living) == nullptr);
}

TEST_CASE("incarnations of an EID are destroyed in any order, and the others stay") {
  for (const size_t gone : {0u, 1u, 2u}) {
    Known known;
    Peer* const all[] = {known.make(2, 5), known.make(2, 6), known.make(2, 7)};
    CHECK(known.peers.full());
    CHECK(known.make(3, 1) == nullptr);
    const PeerId id = known.peers.id_of(*all[gone]);
    known.peers.destroy(*all[gone]);
    CHECK(known.peers.find(id) == nullptr);
    for (size_t i = 0; i < 3; ++i) {
      const auto found = known.peers.find(at(2).address, at(2), Incarnation(5 + i));
      CHECK(found == (i == gone ? nullptr : all[i]));
    }
    CHECK(known.peers.size() == 2);
  }
}

TEST_CASE("the least needed peer is the first to be forgotten") {
  Known known;
  Peer* const first = known.make(2, 5);
  Peer* const second = known.make(3, 5);
  Peer* const self = known.make(1, 5);
  first->spoke = second->spoke = true;
  first->contact_at = Time(2s);
  second->contact_at = Time(1s);
  CHECK(known.peers.least_needed() == second);  // silent for longest; never the device itself
  second->asked_for = true;
  CHECK(known.peers.least_needed() == first);
  first->spoke = false;
  second->given_up = true;  // a caller asked, and the peer did not answer
  CHECK(known.peers.least_needed() == first);
  first->opening = true;
  CHECK(known.peers.least_needed() == second);
  second->opening = true;
  CHECK(known.peers.least_needed() == nullptr);
  CHECK(self->eid == at(1).address);
}

TEST_CASE("half-open peers and goodbyes are counted until they end or the peer is destroyed") {
  Known known;
  Peer* const peer = known.make(2, 5);
  known.peers.begin_half_open(*peer);
  known.peers.begin_goodbye(*peer, 3);
  CHECK(known.peers.half_open() == 1);
  CHECK(known.peers.goodbyes() == 1);
  known.peers.end_half_open(*peer);
  known.peers.end_half_open(*peer);
  CHECK(known.peers.half_open() == 0);
  known.peers.begin_half_open(*peer);
  known.peers.destroy(*peer);
  CHECK(known.peers.half_open() == 0);
  CHECK(known.peers.goodbyes() == 0);
}

TEST_CASE("a peer's timer expires once, and never after the peer was destroyed") {
  Known known;
  Peer* const peer = known.make(2, 5);
  Peer* const gone = known.make(3, 5);
  known.peers.arm(*peer, Time(10ms));
  known.peers.arm(*gone, Time(10ms));
  known.peers.destroy(*gone);
  CHECK(known.peers.next_deadline() <= Time(10ms));
  uint32_t due[4];
  CHECK(known.peers.take_due(Time(9ms), due) == 0);
  REQUIRE(known.peers.take_due(Time(11ms), due) == 1);
  CHECK(known.peers.find(due[0]) == peer);
  CHECK(known.peers.take_due(Time(1s), due) == 0);
}

}  // namespace
}  // namespace urma::test
