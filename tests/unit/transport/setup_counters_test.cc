// SPDX-License-Identifier: Apache-2.0
// Each set-up message that has no effect is counted under one reason. There is one Transport; the
// test plays all of its peers, and checks the counters after each message.

#include <vector>

#include "tests/catch.h"
#include "tests/fuzz/packet.h"
#include "tests/usual_offer.h"
#include "transport/transport.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using fuzz::Bytes;
using fuzz::Packet;
using transport::Counters;

using Reason = uint64_t Counters::*;

constexpr Reason reasons[] = {&Counters::malformed,         &Counters::wrong_partition,
                              &Counters::wrong_source,      &Counters::unknown_channel,
                              &Counters::setup_incarnation, &Counters::setup_late,
                              &Counters::setup_declined};

// The layer above. It records the channel that is up.
class Upper final : public transport::PacketSink, public transport::PacketSource {
 public:
  bool admits(const transport::Received&) override { return true; }
  void accept(const transport::Received&, Time) override {}
  void delivered(PeerId, std::span<const transport::SliceRef>, Time) override {}
  void up(PeerId, transport::Channel& made, Time) override { channel = &made; }
  void down(PeerId, transport::Why, Time) override { channel = nullptr; }
  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      if (packet.slice == transport::SliceRef{}) continue;
      std::memset(packet.frame->head + packet.frame->head_bytes, 0, 16);
      packet.frame->head_bytes = static_cast<uint8_t>(packet.frame->head_bytes + 16);
    }
  }

  transport::Channel* channel = nullptr;  // the latest channel that is up
};

Endpoint place(uint8_t number) { return {ipv4(10, 0, 0, number), ub_port}; }

class Setup {
 public:
  static constexpr uint64_t our_life = 0x1234;
  static constexpr uint64_t their_life = 0x5678;

  explicit Setup(bool several_paths = false, Duration idle_timeout = {})
      : several_paths_(several_paths),
        transport(settings(several_paths, idle_timeout), entropy_, upper) {}

  // Returns a valid message from the peer.
  static SetupMessage message(SetupType type) {
    SetupMessage out = usual_offer();
    out.type = type;
    out.from_life = their_life;
    out.to_life = our_life;
    return out;
  }
  SetupMessage open() {
    SetupMessage out = message(SetupType::open);
    out.to_life = 0;
    out.from_tpn = 1000 + attempt_;
    out.first_psn = 1;
    out.attempt = ++attempt_;
    if (several_paths_) {
      out.features |= feature_paths | feature_new_paths;
      out.paths = {.count = 1, .endpoints = {place(2)}};
    }
    return out;
  }

  void say(const SetupMessage& said, const Endpoint& from, const Addresses& addresses) {
    std::array<std::byte, TxFrame::head_room> head;
    std::array<std::byte, SetupMessage::most_paths_size> paths;
    const size_t path_bytes = emit_paths(said.paths, paths);
    TxFrame frame;
    frame.head = head.data();
    write_setup(frame, addresses, said, 0, Carrier::unreliable, std::span(paths).first(path_bytes));
    Bytes bytes(frame.bytes());
    drivers::flatten(frame, bytes.data());
    const Packet packet = fuzz::sealed(std::move(bytes), from, place(1));
    const RxFrame received = fuzz::received(packet);
    transport.receive({&received, 1}, now);
  }
  void say(const SetupMessage& said, const Endpoint& from = place(2)) {
    say(said, from, {.source = from.address, .destination = place(1).address});
  }

  // Returns the set-up messages that leave now.
  std::vector<SetupMessage> sent() {
    std::vector<SetupMessage> out;
    while (transport.wants_to_send()) {
      TxFrame* frame = nullptr;
      REQUIRE(pool_.lend({&frame, 1}) == 1);
      const size_t filled = transport.fill(upper, {&frame, 1}, now);
      const Packet packet = filled == 1 ? fuzz::gathered(*frame, place(1)) : Packet{};
      pool_.take_back(frame);
      if (filled == 0) break;
      const auto body = std::span(packet.bytes).first(packet.bytes.size() - icrc_bytes);
      if (const auto setup = parse_setup(body)) out.push_back(setup->message);
    }
    return out;
  }
  // Returns the only set-up message that leaves now.
  SetupMessage only_sent() {
    const auto all = sent();
    REQUIRE(all.size() == 1);
    return all[0];
  }

  // Sends a message to the Transport, and checks that it is counted once, under this reason, and
  // not answered.
  template <class... From>
  void ignored(Reason reason, const SetupMessage& said, From&&... from) {
    sent();
    const Counters before = transport.counters();
    const uint32_t channels = transport.counts().channels;
    say(said, std::forward<From>(from)...);
    const Counters after = transport.counters();
    CHECK(after.*reason == before.*reason + 1);
    CHECK(total(after) == total(before) + 1);
    CHECK(after.setup_received == before.setup_received + 1);
    CHECK(transport.counts().channels == channels);
    CHECK(sent().empty());
  }
  // Sends a message to the Transport, and checks that its answer has this type and that it is not
  // counted as ignored. Returns the answer.
  template <class... From>
  SetupMessage answered(SetupType type, const SetupMessage& said, From&&... from) {
    sent();
    const Counters before = transport.counters();
    say(said, std::forward<From>(from)...);
    CHECK(total(transport.counters()) == total(before));
    CHECK(transport.counters().setup_received == before.setup_received + 1);
    const SetupMessage answer = only_sent();
    CHECK(answer.type == type);
    return answer;
  }
  static uint64_t total(const Counters& counters) {
    uint64_t sum = 0;
    for (const Reason reason : reasons) sum += counters.*reason;
    return sum;
  }

  // A channel with the peer at place(2): its OPEN, and the answer.
  struct Link {
    SetupMessage open;
    SetupMessage accept;
  };
  Link connect() {
    const SetupMessage opening = open();
    return {opening, answered(SetupType::accept, opening)};
  }
  // Returns a valid message of the other end of the channel.
  static SetupMessage on(const Link& link, SetupType type) {
    SetupMessage out = message(type);
    out.from_tpn = link.open.from_tpn;
    out.to_tpn = link.accept.from_tpn;
    if (type == SetupType::paths) {
      out.features |= feature_paths | feature_new_paths;
      out.paths = {.count = 1, .number = 1, .endpoints = {place(2)}};
    }
    return out;
  }
  // Makes the Transport ask the peer at place(2) for a channel, and returns its OPEN.
  SetupMessage ask() {
    transport.channel(transport.know(place(2).address, place(2), {}), now);
    const SetupMessage asked = only_sent();
    REQUIRE(asked.type == SetupType::open);
    return asked;
  }
  // Returns a valid answer to this OPEN.
  static SetupMessage to(const SetupMessage& asked, SetupType type) {
    SetupMessage out = message(type);
    out.to_tpn = asked.from_tpn;
    out.attempt = asked.attempt;
    out.from_tpn = 77;
    return out;
  }

 private:
  static transport::Settings settings(bool several_paths, Duration idle_timeout) {
    transport::Settings out{.self = place(1),
                            .eid = place(1).address,
                            .life = Incarnation(our_life),
                            .controller = congestion::find_controller("fixed"),
                            .idle_timeout = idle_timeout,
                            .peers = 100,
                            .packets = 8192,
                            .slices = 8192};
    if (several_paths) out.paths = {.count = 2, .endpoints = {place(1), place(11)}};
    return out;
  }

  const bool several_paths_;
  SeededEntropy entropy_{1};
  drivers::FramePool pool_{4};
  uint32_t attempt_ = 0;

 public:
  Time now{1s};
  Upper upper;
  transport::Transport transport;
};

TEST_CASE("a set-up message of an unknown type, partition or source is counted") {
  Setup setup;
  // A message of an unknown type does not count as a set-up message.
  setup.say(Setup::message(static_cast<SetupType>(77)));
  CHECK(setup.transport.counters().malformed == 1);
  CHECK(setup.transport.counters().setup_received == 0);
  setup.ignored(&Counters::wrong_partition, setup.open(), place(2),
                Addresses{.upi = 5, .source = place(2).address, .destination = {}});
  setup.ignored(&Counters::wrong_source, setup.open(), place(2),
                Addresses{.source = place(3).address, .destination = {}});
}

TEST_CASE("an OPEN with a field out of range is counted as malformed") {
  Setup setup;
  const auto spoilt = [&](auto&& spoil) {
    SetupMessage open = setup.open();
    spoil(open);
    setup.ignored(&Counters::malformed, open);
  };
  spoilt([](SetupMessage& open) { open.from_life = 0; });
  spoilt([](SetupMessage& open) { open.from_tpn = 0; });
  spoilt([](SetupMessage& open) { open.attempt = 0; });
  spoilt([](SetupMessage& open) { open.mtu_log2 = 9; });
}

TEST_CASE("an OPEN that is refused is answered and counted as refused") {
  Setup setup;
  SetupMessage open = setup.open();
  open.version = 2;
  CHECK(setup.answered(SetupType::refuse, open).reason == SetupReason::version);
  open = setup.open();
  open.to_life = Setup::our_life + 1;
  CHECK(setup.answered(SetupType::refuse, open).reason == SetupReason::restarted);
  open = setup.open();
  open.to_tpn = 5;  // a TPN of a channel that this end has forgotten
  CHECK(setup.answered(SetupType::refuse, open).reason == SetupReason::restarted);
  CHECK(setup.transport.counters().setup_refused == 3);
  CHECK(setup.transport.counters().setup_sent == 3);
}

TEST_CASE("an old OPEN, and one that crosses an OPEN of this device, are counted") {
  Setup setup;
  const Setup::Link link = setup.connect();
  // The answer was lost: it is repeated, and no message is counted as ignored.
  setup.answered(SetupType::accept, link.open);
  SetupMessage earlier = link.open;
  earlier.from_tpn = 999;
  setup.ignored(&Counters::setup_late, earlier);
  // This device has the lower EID, so the peer answers its OPEN.
  Setup asking;
  asking.ask();
  asking.ignored(&Counters::setup_declined, asking.open());
}

TEST_CASE("an OPEN from another address with a random EID that is in use is counted once") {
  Setup setup;
  Eid drawn;
  drawn.bytes[0] = std::byte{0xfd};
  drawn.bytes[15] = std::byte{1};
  const Addresses as{.source = drawn, .destination = {}};
  setup.answered(SetupType::accept, setup.open(), place(2), as);
  const Counters before = setup.transport.counters();
  setup.say(setup.open(), place(3), as);
  CHECK(setup.transport.counters().wrong_source == before.wrong_source + 1);
  CHECK(Setup::total(setup.transport.counters()) == Setup::total(before) + 1);
  for (const SetupMessage& sent : setup.sent()) CHECK(sent.type != SetupType::accept);
}

TEST_CASE("OPENs that are answered with a cookie are counted, also if they forge one") {
  Setup setup;
  setup.connect();
  // This OPEN could end a channel.
  const SetupMessage retry = setup.answered(SetupType::retry, setup.open());
  CHECK(setup.transport.counters().setup_cookies == 1);
  SetupMessage open = setup.open();
  open.cookie = retry.cookie + 2;  // a guess
  setup.answered(SetupType::retry, open);
  CHECK(setup.transport.counters().setup_cookies == 2);
  // From the 65th half-open channel on, OPENs of unknown EIDs must bring back a cookie.
  Eid drawn;
  drawn.bytes[0] = std::byte{0xfd};
  drawn.bytes[15] = std::byte{1};
  for (unsigned i = 0; i < 1000; ++i) {
    drawn.bytes[1] = static_cast<std::byte>(i);
    drawn.bytes[2] = static_cast<std::byte>(i >> 8);
    setup.say(setup.open(), place(3), {.source = drawn, .destination = {}});
    setup.sent();
  }
  const Counters& after = setup.transport.counters();
  CHECK(after.setup_cookies == 2 + 1000 - 63);  // one channel was half open already
  CHECK(after.setup_received == 3 + 1000);
  CHECK(after.setup_sent == 3 + 1000);
  CHECK(Setup::total(after) == 0);
}

TEST_CASE("invalid answers to an OPEN are counted by the field that is wrong") {
  Setup setup;
  const SetupMessage asked = setup.ask();
  for (const SetupType type : {SetupType::accept, SetupType::retry, SetupType::refuse}) {
    SetupMessage answer = Setup::to(asked, type);
    answer.reason = SetupReason::restarted;
    answer.cookie = 5;
    SetupMessage wrong = answer;
    wrong.to_life = Setup::our_life - 1;
    setup.ignored(&Counters::setup_incarnation, wrong);
    wrong = answer;
    ++wrong.attempt;
    setup.ignored(&Counters::setup_late, wrong);
    wrong = answer;
    ++wrong.to_tpn;
    setup.ignored(&Counters::setup_late, wrong);
    setup.ignored(&Counters::wrong_source, answer, place(3));
  }
  SetupMessage refuse = Setup::to(asked, SetupType::refuse);
  refuse.reason = SetupReason::leaving;  // not a reason for a REFUSE
  setup.ignored(&Counters::malformed, refuse);
  SetupMessage accept = Setup::to(asked, SetupType::accept);
  accept.from_life = 0;
  setup.ignored(&Counters::malformed, accept);
  accept = Setup::to(asked, SetupType::accept);
  accept.mtu_log2 = 40;
  setup.ignored(&Counters::malformed, accept);
  // Valid answers have their effect.
  SetupMessage retry = Setup::to(asked, SetupType::retry);
  retry.cookie = 9;
  CHECK(setup.answered(SetupType::open, retry).cookie == 9);
  setup.ignored(&Counters::setup_late, retry);  // the same cookie again
  const Counters before = setup.transport.counters();
  setup.say(Setup::to(asked, SetupType::accept));
  CHECK(setup.transport.counts().channels == 1);
  CHECK(Setup::total(setup.transport.counters()) == Setup::total(before));
  setup.ignored(&Counters::setup_late, Setup::to(asked, SetupType::accept));  // and again
}

TEST_CASE("messages about unknown channels, or channels of other peers, are counted") {
  Setup setup;
  const Setup::Link link = setup.connect();
  for (const SetupType type : {SetupType::question, SetupType::answer, SetupType::noted,
                               SetupType::paths, SetupType::closed, SetupType::reset}) {
    INFO(static_cast<int>(type));
    const SetupMessage right = Setup::on(link, type);
    SetupMessage wrong = right;
    wrong.to_tpn ^= 1;
    setup.ignored(&Counters::unknown_channel, wrong);
    if (type != SetupType::reset) {  // a RESET contains no incarnation
      wrong = right;
      ++wrong.to_life;
      setup.ignored(&Counters::setup_incarnation, wrong);
    }
    if (type == SetupType::closed) continue;  // a CLOSED is verified by its cookie only
    wrong = right;
    ++wrong.from_tpn;
    setup.ignored(&Counters::unknown_channel, wrong);
    setup.ignored(&Counters::wrong_source, right, place(3));
  }
  setup.ignored(&Counters::setup_late, Setup::on(link, SetupType::answer));
  setup.ignored(&Counters::setup_late, Setup::on(link, SetupType::noted));
  setup.ignored(&Counters::setup_late, Setup::on(link, SetupType::closed));
  setup.answered(SetupType::answer, Setup::on(link, SetupType::question));
}

TEST_CASE("RESETs that change nothing are counted") {
  Setup setup;
  const Setup::Link link = setup.connect();
  SetupMessage reset = Setup::on(link, SetupType::reset);
  reset.echoed_psn = (link.accept.first_psn - 1) & (Psn::modulus - 1);
  setup.ignored(&Counters::setup_late, reset);
  // A RESET for a packet that was sent makes the device ask; a second one changes nothing.
  REQUIRE(setup.upper.channel != nullptr);
  REQUIRE(setup.upper.channel->offer({1, 0}, transport::Class::request, 100));
  setup.sent();
  reset.echoed_psn = link.accept.first_psn;
  setup.answered(SetupType::open, reset);
  setup.ignored(&Counters::setup_declined, reset);
}

TEST_CASE("a CLOSE of another incarnation, another address or a channel in use is counted") {
  Setup setup(false, 100ms);
  const Setup::Link link = setup.connect();
  const SetupMessage right = Setup::on(link, SetupType::close);
  SetupMessage wrong = right;
  ++wrong.to_life;
  setup.ignored(&Counters::setup_incarnation, wrong);
  setup.ignored(&Counters::wrong_source, right, place(3));
  SetupMessage idle = right;
  idle.reason = SetupReason::idle;
  idle.cookie = 4;
  REQUIRE(setup.upper.channel->offer({1, 0}, transport::Class::request, 100));
  setup.ignored(&Counters::setup_declined, idle);
  // The channel is right and the incarnation is wrong: the CLOSE is answered, and ends no channel.
  wrong = right;
  wrong.reason = SetupReason::leaving;
  ++wrong.from_life;
  const Counters before = setup.transport.counters();
  setup.say(wrong);
  CHECK(setup.only_sent().type == SetupType::closed);
  CHECK(setup.transport.counters().setup_incarnation == before.setup_incarnation + 1);
  CHECK(Setup::total(setup.transport.counters()) == Setup::total(before) + 1);
  CHECK(setup.transport.counts().channels == 1);
  // A CLOSE of a channel that has ended is answered, because the first answer may have been lost.
  wrong = right;
  ++wrong.from_tpn;
  wrong.to_tpn ^= 1;
  setup.answered(SetupType::closed, wrong);
}

TEST_CASE("an OPEN that comes while the device closes is counted as declined") {
  Setup setup;
  const Setup::Link link = setup.connect();
  setup.transport.close(setup.now);
  CHECK(setup.only_sent().type == SetupType::close);
  setup.ignored(&Counters::setup_declined, setup.open(), place(3));
  SetupMessage reset = Setup::on(link, SetupType::reset);
  setup.ignored(&Counters::setup_declined, reset);
}

TEST_CASE("questions and lists of paths that are ignored are counted") {
  Setup setup(true);
  const Setup::Link link = setup.connect();
  SetupMessage answer = Setup::on(link, SetupType::answer);
  answer.attempt = 7;  // a path that does not exist
  setup.ignored(&Counters::setup_late, answer);
  answer.attempt = 0;
  answer.cookie = 1;  // no question had this cookie
  setup.ignored(&Counters::setup_late, answer);
  answer.attempt = 1;  // this path leads from another address of this device
  setup.ignored(&Counters::wrong_source, answer);

  SetupMessage paths = Setup::on(link, SetupType::paths);
  ++paths.from_life;
  setup.ignored(&Counters::setup_incarnation, paths);
  --paths.from_life;
  // This list comes from an address that is neither known nor in the list.
  setup.ignored(&Counters::wrong_source, paths, place(3));
  for (uint32_t number = 1; number <= 8; ++number) {
    paths.paths.number = number;
    setup.say(paths);
  }
  paths.paths.number = 9;
  setup.ignored(&Counters::setup_declined, paths);
}

TEST_CASE("set-up messages that could not be sent are counted") {
  Setup setup;
  SetupMessage open = setup.open();
  open.version = 2;
  for (int i = 0; i < 100; ++i) setup.say(open);
  CHECK(setup.transport.counters().setup_refused == 100);
  CHECK(setup.transport.counters().setup_unsent == 36);
  CHECK(setup.sent().size() == 64);
  CHECK(setup.transport.counters().setup_sent == 64);
}

TEST_CASE("RESETs beyond ten in 10 ms are counted as not sent") {
  Setup setup;
  Bytes data(Rtph::size);
  const Rtph header{
      .last = true, .opcode = static_cast<uint8_t>(TpOpcode::data), .source = 5, .destination = 6};
  header.emit(HeaderBytes<Rtph::size>(data.data(), Rtph::size));
  const Packet packet = fuzz::sealed(data, place(2), place(1));
  for (int i = 0; i < 30; ++i) {
    const RxFrame frame = fuzz::received(packet);
    setup.transport.receive({&frame, 1}, setup.now);
  }
  CHECK(setup.transport.counters().unknown_channel == 30);
  CHECK(setup.transport.counters().setup_unsent == 20);
  CHECK(setup.sent().size() == 10);
}

TEST_CASE("set-up messages whose path was removed are counted as not sent") {
  Setup setup(true);
  SetupMessage open = setup.open();
  open.version = 2;
  setup.say(open);
  PathList rest = setup.transport.paths();
  rest.endpoints[0] = {};
  setup.transport.announce_paths(rest, setup.now);
  setup.transport.close_path(0);
  CHECK(setup.sent().empty());
  CHECK(setup.transport.counters().setup_unsent == 1);
}

}  // namespace
}  // namespace urma::test
