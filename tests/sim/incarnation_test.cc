// SPDX-License-Identifier: Apache-2.0
// Set-up messages name the incarnation that they are meant for and the incarnation that sends them.
// A message that names a wrong incarnation has no effect, whether it is late, forged, or meant for
// a process that had this address before. The same message with the right incarnations has an
// effect.

#include "tests/catch.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Message = SetupMessage;

constexpr uint64_t another_life = 0x1234;

Statistics stats_of(SimHosts::Host& host) { return host.device.stats().value(); }

// A device, and a stranger that has a channel to the device.
struct Known {
  explicit Known(const std::string& name, const std::string& device = "",
                 const DeviceOptions& options = {})
      : hosts(name),
        here(device.empty() ? hosts.start("", {.berths = 64}, options)
                            : SimHosts::start_at(device, {.berths = 64}, options)),
        peer(hosts, "fd00::55"),
        to(here.device.endpoint()) {}

  void connect() {
    REQUIRE(peer.connect(to));
    peer.keep_alive();
    while (peer.heard()) {
    }
    REQUIRE(stats_of(here).channels == 1);
  }
  // Returns a message with the fields that name the channel and both incarnations.
  Message message(SetupType type) const {
    Message said;
    said.type = type;
    said.from_life = peer.life;
    said.to_life = peer.their_life();
    said.from_tpn = peer.ours();
    said.to_tpn = peer.theirs();
    return said;
  }

  SimHosts hosts;
  SimHosts::Host here;
  Stranger peer;
  const Endpoint to;
};

TEST_CASE("CLOSE ends a channel only if it names both of its incarnations") {
  for (const SetupReason reason : {SetupReason::leaving, SetupReason::none, SetupReason::idle}) {
    INFO("reason of the close " << static_cast<int>(reason));
    Known known("close-" + std::to_string(static_cast<int>(reason)));
    known.connect();
    Message close = known.message(SetupType::close);
    close.reason = reason;
    close.cookie = 7;

    Message wrong = close;
    wrong.to_life = another_life;
    known.peer.say(known.to, wrong);
    CHECK(stats_of(known.here).channels == 1);
    CHECK_FALSE(known.peer.heard());
    wrong.to_life = 0;
    known.peer.say(known.to, wrong);
    CHECK(stats_of(known.here).channels == 1);
    CHECK_FALSE(known.peer.heard());
    wrong = close;
    wrong.from_life = another_life;
    known.peer.say(known.to, wrong);
    CHECK(stats_of(known.here).channels == 1);
    CHECK(stats_of(known.here).peers_left == 0);
    while (known.peer.heard()) {
    }

    known.peer.say(known.to, close);
    CHECK(stats_of(known.here).channels == 0);
    CHECK(stats_of(known.here).peers_left == (reason == SetupReason::leaving ? 1 : 0));
    const auto answer = known.peer.heard();
    REQUIRE(answer);
    CHECK(answer->type == SetupType::closed);
  }
}

TEST_CASE("CLOSED ends an idle channel only if it names the incarnation that asked") {
  Known known("closed-life", "", {.idle_timeout = 100ms});
  known.connect();
  known.hosts.run_for(110ms);
  const auto asked = known.peer.heard();
  REQUIRE(asked);
  REQUIRE(asked->type == SetupType::close);
  Message closed = known.message(SetupType::closed);
  closed.cookie = asked->cookie;
  closed.to_life = another_life;
  known.peer.say(known.to, closed);
  CHECK(stats_of(known.here).channels == 1);
  closed.to_life = known.peer.their_life();
  closed.from_life = another_life;
  known.peer.say(known.to, closed);
  CHECK(stats_of(known.here).channels == 1);
  closed.from_life = known.peer.life;
  known.peer.say(known.to, closed);
  CHECK(stats_of(known.here).channels == 0);
}

TEST_CASE("PATHS is noted only if it names both incarnations of its channel") {
  Known known("paths-life");
  known.peer.features = feature_paths | feature_new_paths;
  const auto list = [&](uint32_t number) {
    PathList places;
    places.set(0, known.peer.at());
    Endpoint other = known.peer.at();
    ++other.port;
    places.set(1, other);
    places.number = number;
    std::array<std::byte, Message::most_paths_size> out;
    const size_t bytes = emit_paths(places, out);
    return std::vector(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes));
  };
  known.peer.paths = list(0);
  known.connect();
  known.peer.paths = list(1);
  const auto noted = [&](uint64_t from_life, uint64_t to_life) {
    known.peer.count(SetupType::noted);
    Message told = known.message(SetupType::paths);
    told.features |= known.peer.features;
    told.cookie = 5;
    told.from_life = from_life;
    told.to_life = to_life;
    known.peer.say(known.to, told);
    return known.peer.count(SetupType::noted);
  };
  CHECK(noted(known.peer.life, another_life) == 0);
  CHECK(noted(another_life, known.peer.their_life()) == 0);
  CHECK(noted(known.peer.life, known.peer.their_life()) == 1);
}

TEST_CASE("QUESTION is answered only if it names this incarnation") {
  Known known("question-life");
  known.connect();
  const auto answered = [&](uint64_t to_life) {
    Message question = known.message(SetupType::question);
    question.cookie = 9;
    question.to_life = to_life;
    known.peer.say(known.to, question);
    return known.peer.count(SetupType::answer) > 0;
  };
  CHECK_FALSE(answered(another_life));
  CHECK(answered(known.peer.their_life()));
}

TEST_CASE("NOTED ends the announcement of new paths only if it names this incarnation") {
  const std::string path = "sim:noted-life";
  Known known("noted-life", "paths():" + path + "+" + path);
  known.peer.features = feature_new_paths;
  known.connect();
  const auto told_in = [&](Duration time) {
    known.peer.count(SetupType::paths);
    known.hosts.run_for(time);
    return known.peer.count(SetupType::paths);
  };
  REQUIRE(known.here.device.add_path(path).ok());
  known.hosts.run_for(100us);
  const auto told = known.peer.heard(SetupType::paths);
  REQUIRE(told);
  Message noted = known.message(SetupType::noted);
  noted.cookie = told->cookie;
  noted.to_life = another_life;
  known.peer.say(known.to, noted);
  CHECK(told_in(100ms) > 0);
  noted.to_life = known.peer.their_life();
  known.peer.say(known.to, noted);
  CHECK(told_in(100ms) == 0);
}

TEST_CASE("ACCEPT and REFUSE answer an OPEN only if they name the incarnation that asked") {
  Known known("accept-life");
  Descriptor claimed = parse_descriptor(known.here.line).value();
  claimed.at = known.peer.at();
  claimed.eid = known.peer.at().address;
  claimed.life = Incarnation(known.peer.life);
  const Imported target = known.here.device.import(to_string(claimed)).value();
  const auto bytes = bytes_like(100);
  REQUIRE(known.here.jetty.post(write(bytes, target.segment)) == 1);
  known.hosts.run_for(100us);
  const auto asked = known.peer.heard(SetupType::open);
  REQUIRE(asked);
  Message accept = known.peer.open();
  accept.type = SetupType::accept;
  accept.to_tpn = asked->from_tpn;
  accept.attempt = asked->attempt;
  Message refuse = accept;
  refuse.type = SetupType::refuse;
  refuse.reason = SetupReason::restarted;
  for (Message wrong : {accept, refuse}) {
    wrong.to_life = another_life;
    known.peer.say(known.to, wrong);
    CHECK(stats_of(known.here).channels == 0);
    CHECK(stats_of(known.here).peers_restarted == 0);
  }
  accept.to_life = asked->from_life;
  known.peer.say(known.to, accept);
  CHECK(stats_of(known.here).channels == 1);
}

}  // namespace
}  // namespace urma::test
