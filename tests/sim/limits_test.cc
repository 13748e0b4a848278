// SPDX-License-Identifier: Apache-2.0
// Limits on what one peer may take from others: their EIDs, table entries and memory.

#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

Eid address(const std::string& text) { return parse_address(text).value(); }

TEST_CASE("an EID that is an address is refused from another address") {
  auto [hosts, victim, server, target] =
      SimPair("claimed-address", {.network = "address=2001:db8::2"});
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);

  Stranger thief(hosts, "2001:db8::66", address("2001:db8::2"));
  CHECK_FALSE(thief.connect(server.device.endpoint()));
  Stranger itself(hosts, "2001:db8::67");
  CHECK(itself.connect(server.device.endpoint()));
  CHECK(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);
  const Statistics statistics = server.device.stats().value();
  CHECK(statistics.peers == 3);  // the device itself, the victim, and the thief under its own EID
  CHECK(victim.device.stats().value().channels_made == 1);
}

TEST_CASE("a random EID with a living channel is refused to others, even if that channel is idle") {
  auto [hosts, victim, server, target] =
      SimPair("claimed-draw", {.network = "address=fd77::1:0:1"});
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);

  Stranger thief(hosts, "2001:db8::66", address("fd77::1:0:1"));
  for (const Duration silence : {1ms, 1500ms, 5000ms}) {
    hosts.run_for(silence);
    CHECK_FALSE(thief.connect(server.device.endpoint()));
  }
  CHECK(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);
  CHECK(victim.device.stats().value().channels_made == 1);

  // An EID without a channel may be claimed: its process may have moved to this address.
  hosts.kill(std::move(victim));
  CHECK_FALSE(thief.connect(server.device.endpoint()));
  hosts.run_for(1100ms);
  CHECK(thief.connect(server.device.endpoint()));
}

TEST_CASE("forged OPENs are counted, and so are the cookies that were asked for") {
  SimHosts hosts("forged-opens");
  auto server = hosts.start();
  Stranger liar(hosts, "2001:db8::66");
  constexpr unsigned count = 20'000;
  for (unsigned i = 0; i < count; ++i) {
    Eid drawn = address("fd77::1");
    drawn.bytes[2] = static_cast<std::byte>(i);
    drawn.bytes[3] = static_cast<std::byte>(i >> 8);
    liar.claim(drawn);
    liar.say(server.device.endpoint(), liar.open());
    if (i % 64 == 0) liar.heard();
  }
  hosts.run_for(1ms);
  const Statistics statistics = server.device.stats().value();
  CHECK(statistics.setup_received == count);
  CHECK(statistics.setup_cookies >= count - 64);
  CHECK(statistics.setup_cookies < count);
  CHECK(statistics.setup_sent >= count);
  CHECK(statistics.setup_unsent == 0);
  // Answers that the attacker has made up.
  SetupMessage answer;
  answer.from_life = liar.life;
  for (const auto type : {SetupType::accept, SetupType::close}) {
    answer.type = type;
    answer.to_life = 12345;  // the attacker has to guess this
    liar.say(server.device.endpoint(), answer);
  }
  CHECK(server.device.stats().value().setup_incarnation == 2);
  CHECK(server.device.stats().value().setup_received == count + 2);
}

// Returns the headers of one packet of a write, as a correct sender would set them.
TaRequest write_request(const Segment& segment, uint64_t offset, uint32_t length) {
  const Descriptor::Segment target = parse_descriptor(segment.descriptor()).value().segment.value();
  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(TaOpcode::write), .token_present = true};
  request.memory = {
      .address = target.address + offset, .token_id = number(target.id), .length = length};
  request.token.token = number(target.token);
  return request;
}

// Returns the headers of one message to the Jetty of this host.
TaRequest message_request(const SimHosts::Host& host) {
  const Descriptor::Jetty target = parse_descriptor(host.line).value().jetty.value();
  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(TaOpcode::send),
                  .token_present = true,
                  .target_present = true};
  request.target.target = number(target.id);
  request.token.token = number(target.token);
  return request;
}

TEST_CASE("a slice that leaves its segment changes nothing, even if most of it lies inside") {
  auto [hosts, here, there, target] = SimPair("half-outside");
  const auto bytes = bytes_like(12'000);
  // The initiator checks bounds only against the descriptor, which was changed here.
  target.segment.bytes += 1 << 20;
  const uint64_t offset = there.segment.bytes().size() - 10'000;
  CHECK(status_of(here.jetty, write(bytes, target.segment, offset)) == Status::remote_access);
  const Work with_immediate =
      write(bytes, target.segment, offset).to(target.jetty).immediate(1).tag(1);
  CHECK(status_of(here.jetty, with_immediate) == Status::remote_access);
  const std::vector<std::byte> nothing(10'000);
  CHECK(same(there.segment.bytes().last(nothing.size()), nothing));
  // A write that ends with the last byte of the segment succeeds.
  const auto fitting = std::span(bytes).first(10'000);
  CHECK(status_of(here.jetty, write(fitting, target.segment, offset)) == Status::ok);
  CHECK(same(there.segment.bytes().last(fitting.size()), fitting));
}

TEST_CASE("the last packet of a slice shows where the slice begins; one in the middle does not") {
  SimHosts hosts("overtaken");
  auto there = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(there.device.endpoint()));
  const auto bytes = bytes_like(3 * Stranger::mtu);
  const uint64_t end = there.segment.bytes().size();
  const auto packet = [&](uint32_t i) {
    return std::span(bytes).subspan(size_t{i} * Stranger::mtu, Stranger::mtu);
  };
  const auto request = [&](uint64_t start, uint32_t i) {
    return write_request(there.segment, start + size_t{i} * Stranger::mtu, 3 * Stranger::mtu);
  };
  // The last packet comes first. It lies inside the segment, but the first packet of its slice
  // would not.
  const uint64_t before = 0 - uint64_t{Stranger::mtu};
  stranger.send({.slice = 1, .skip = 2}, request(before, 2), packet(2));
  const std::vector<std::byte> nothing(Stranger::mtu);
  CHECK(same(there.segment.bytes().subspan(Stranger::mtu, Stranger::mtu), nothing));
  // A packet from the middle of a slice is not refused if the packet lies inside the segment,
  // wherever its slice begins.
  stranger.send({.slice = 2, .last = false, .skip = 1}, request(end - 3 * Stranger::mtu, 1),
                packet(1));
  CHECK(same(there.segment.bytes().last(2 * Stranger::mtu).first(Stranger::mtu), packet(1)));
}

TEST_CASE("slices that one peer begins and never ends leave memory for those of others") {
  SimHosts hosts("unfinished");
  auto server = hosts.start();
  auto client = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(server.device.endpoint()));
  const auto bytes = bytes_like(Stranger::mtu);
  TaRequest request = write_request(server.segment, 0, 2 * Stranger::mtu);
  request.token.token ^= 1;  // this works even without a valid token
  for (uint32_t slice = 0; slice < 17'000; ++slice) {
    stranger.send({.slice = slice, .last = false}, request, bytes);
    if (slice % 1024 == 0) stranger.answers();
  }
  CHECK(server.device.stats().value().dropped_other > 0);

  const Imported to_server = client.device.import(server.line).value();
  const Imported to_client = server.device.import(client.line).value();
  const auto more = bytes_like(100'000);
  CHECK(status_of(client.jetty, write(more, to_server.segment)) == Status::ok);
  CHECK(status_of(server.jetty, write(more, to_client.segment)) == Status::ok);
  std::vector<std::byte> back(more.size());
  CHECK(status_of(server.jetty, read(back, to_client.segment)) == Status::ok);
  CHECK(same(back, more));
}

TEST_CASE("answers that one peer never acknowledges leave memory for those of others") {
  SimHosts hosts("unacknowledged");
  auto server = hosts.start();
  auto client = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(server.device.endpoint()));
  TaRequest request = write_request(server.segment, 0, 1);
  request.memory.address -= 1;
  for (uint32_t slice = 0; slice < 17'000; ++slice) {
    stranger.send({.slice = slice}, request, bytes_like(1));
    if (slice % 256 == 0) stranger.answers();
  }
  CHECK(server.device.stats().value().dropped_other > 0);
  const Imported to_server = client.device.import(server.line).value();
  const auto more = bytes_like(100'000);
  CHECK(status_of(client.jetty, write(more, to_server.segment), 100ms) == Status::ok);
}

// A process with the next version of the protocol: it refuses each message that it does not
// understand.
class Newer final : public drivers::VirtualClock::Driven {
 public:
  explicit Newer(SimHosts& hosts) : network_(hosts.network()) {
    port_ = std::move(*drivers::sim::Port::open(hosts.shared_network(), {}));
    network_.attach(*this, at());
  }
  ~Newer() override { network_.detach(*this); }
  Newer(const Newer&) = delete;

  Time pass(Time now) override {
    std::array<RxFrame, 16> frames;
    const size_t count = port_->receive(frames, now);
    for (const RxFrame& frame : std::span(frames).first(count)) {
      const auto setup = parse_setup(std::span(frame.data, frame.bytes - icrc_bytes));
      if (setup && setup->message.type == SetupType::open) refuse(*setup, *frame.from);
    }
    port_->release(std::span(frames).first(count));
    return never;
  }
  const Endpoint& at() const { return port_->facts().self; }
  uint32_t asked = 0;

 private:
  void refuse(const ReceivedSetup& open, const Endpoint& to) {
    ++asked;
    SetupMessage refusal;
    refusal.type = SetupType::refuse;
    refusal.version = setup_version + 1;
    refusal.reason = SetupReason::version;
    refusal.to_life = open.message.from_life;
    refusal.to_tpn = open.message.from_tpn;
    refusal.attempt = open.message.attempt;
    TxFrame* frame = nullptr;
    REQUIRE(port_->lend({&frame, 1}) == 1);
    write_setup(*frame, {.source = at().address, .destination = open.addresses.source}, refusal, 0);
    frame->to = to;
    seal(*frame, at(), prefix_);
    port_->send({&frame, 1}, network_.now());
  }

  drivers::sim::Network& network_;
  std::unique_ptr<drivers::PacketPort> port_;
  IcrcPrefix prefix_;
};

TEST_CASE("works and imports distinguish a peer of another version from a silent one") {
  SimHosts hosts("newer");
  auto here = hosts.start();
  Newer newer(hosts);
  Descriptor descriptor = parse_descriptor(here.line).value();
  descriptor.at = newer.at();
  descriptor.eid = newer.at().address;
  descriptor.life = Incarnation(7);
  const Imported target = here.device.import(to_string(descriptor)).value();
  const Time posted = hosts.now();
  CHECK(status_of(here.jetty, write(bytes_like(10), target.segment)) == Status::version_mismatch);
  CHECK(hosts.now() - posted < 10ms);
  const auto by_name = here.device.import("urma://" + to_string(newer.at()) + "/inbox", 1s);
  REQUIRE_FALSE(by_name.ok());
  CHECK(by_name.status() == Status::version_mismatch);
  CHECK(newer.asked < 20);  // the device asks less often than the peer refuses
}

TEST_CASE("a peer of another version is refused, and the REFUSE contains this device's version") {
  SimHosts hosts("older");
  auto here = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  SetupMessage message = stranger.open();
  ++message.version;
  const auto answer = stranger.ask(here.device.endpoint(), message);
  REQUIRE(answer);
  CHECK(answer->type == SetupType::refuse);
  CHECK(answer->reason == SetupReason::version);
  CHECK(answer->version == setup_version);
}

TEST_CASE("any number of Jetties, one after another, use no more memory of a peer than one") {
  SimHosts hosts("churn");
  auto server = hosts.start("", {.berths = 8, .receives = 64});
  auto churner = hosts.start();
  auto other = hosts.start();
  const Imported target = churner.device.import(server.line).value();
  const Imported others_target = other.device.import(server.line).value();
  std::vector<std::byte> inbox(64);
  const auto bytes = bytes_like(8);
  const auto send_one = [&](Jetty& from, const Imported& to) {
    REQUIRE(server.jetty.receive(inbox, 1));
    const Status status = status_of(from, send(bytes, to.jetty));
    return status == Status::ok && server.jetty.wait(1s).size() == 1;
  };
  for (unsigned cycle = 0; cycle < 10'000; ++cycle) {
    INFO("cycle " << cycle);
    Jetty jetty = churner.device.jetty({.berths = 1}).value();
    REQUIRE(send_one(jetty, target));
    if (cycle % 1000 == 0) REQUIRE(send_one(other.jetty, others_target));
  }
}

TEST_CASE(
    "a peer that uses too many queues is refused further ones, and no other peer is affected") {
  SimHosts hosts("queues");
  auto server = hosts.start("", {.berths = 8, .receives = 8});
  auto other = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(server.device.endpoint()));
  std::vector<std::byte> inbox(64);
  const auto bytes = bytes_like(8);
  TaRequest message = message_request(server);
  message.target.target ^= 1;  // a Jetty that does not exist
  for (uint32_t queue = 0; queue < 5000; ++queue) {
    message.base.rc_id = 2000 + queue;
    stranger.send({.slice = queue}, message, bytes);
    if (queue % 256 == 0) stranger.answers();
  }
  REQUIRE(stranger.connect(server.device.endpoint()));  // it has acknowledged no packet
  stranger.send({.slice = 1}, message, bytes);
  hosts.run_for(1ms);
  const auto answers = stranger.answers();
  REQUIRE_FALSE(answers.empty());
  CHECK(answers.back().info == static_cast<uint8_t>(CompleterError::no_room));
  REQUIRE(server.jetty.receive(inbox, 1));
  const Imported target = other.device.import(server.line).value();
  CHECK(status_of(other.jetty, send(bytes, target.jetty)) == Status::ok);
}

DeviceOptions with_peers(uint32_t peers) { return {.limits = {.peers = peers}}; }

TEST_CASE("clients that crash leave their slots in the table of peers to later clients") {
  SimHosts hosts("crashing");
  auto server = hosts.start("", {.berths = 8}, with_peers(8));
  const auto bytes = bytes_like(100);
  for (unsigned client = 0; client < 30; ++client) {
    INFO("client " << client);
    auto here = hosts.start();
    const Imported target = here.device.import(server.line).value();
    REQUIRE(status_of(here.jetty, write(bytes, target.segment)) == Status::ok);
    hosts.kill(std::move(here));
  }
}

TEST_CASE(
    "living clients keep their slots in the table of peers, and one that finds no slot is "
    "refused") {
  SimHosts hosts("crowded");
  auto server = hosts.start("", {.berths = 8}, with_peers(8));
  const auto bytes = bytes_like(100);
  std::vector<SimHosts::Host> clients;
  std::vector<Imported> targets;
  std::map<Status, unsigned> ended;
  for (unsigned client = 0; client < 10; ++client) {
    clients.push_back(hosts.start());
    targets.push_back(clients.back().device.import(server.line).value());
    ++ended[status_of(clients.back().jetty, write(bytes, targets.back().segment))];
  }
  CHECK(ended[Status::ok] >= 7);
  CHECK(ended[Status::no_resources] == 10 - ended[Status::ok]);
  for (unsigned client = 0; client < ended[Status::ok]; ++client) {
    CHECK(status_of(clients[client].jetty, write(bytes, targets[client].segment)) == Status::ok);
    CHECK(clients[client].device.stats().value().channels_made == 1);
  }
  // When a client leaves, the waiting client gets its slot.
  hosts.kill(std::move(clients.front()));
  CHECK(status_of(clients.back().jetty, write(bytes, targets.back().segment)) == Status::ok);
}

TEST_CASE("a peer whose execution record was forgotten is not served as a new one") {
  auto [hosts, here, server, target] =
      SimPair("forgotten", {.jetty = {.berths = 8}, .device = {.operation_timeout = 30s}},
              {.jetty = {.berths = 8, .receives = 16}, .device = with_peers(4)});
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(server.jetty.receive(inbox, tag));
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, send(bytes, target.jetty)) == Status::ok);

  // The message is executed and no answer comes. Then the server needs the client's slot in its
  // table of peers.
  hosts.network().faults.cut(server.device.endpoint(), here.device.endpoint(), true);
  REQUIRE(here.jetty.post(send(bytes, target.jetty).tag(2)) == 1);
  hosts.run_for(1500ms);
  std::vector<SimHosts::Host> others;
  for (unsigned i = 0; i < 4; ++i) {
    others.push_back(hosts.start());
    const Imported same_target = others.back().device.import(server.line).value();
    REQUIRE(others.back().jetty.post(write(bytes, same_target.segment)) == 1);
    REQUIRE(others.back().jetty.wait(5s).size() == 1);
  }
  hosts.network().faults.cut(server.device.endpoint(), here.device.endpoint(), false);
  const auto completions = here.jetty.wait(10s);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == Status::unknown);
  CHECK(server.jetty.wait(10ms).size() == 2);

  // The refusal is not permanent: a new import begins a new acquaintance when there is a free slot
  // again.
  CHECK(status_of(here.jetty, send(bytes, target.jetty)) == Status::peer_restarted);
  others.front().device.close();
  target = here.device.import(server.line).value();
  CHECK(status_of(here.jetty, send(bytes, target.jetty)) == Status::ok);
  CHECK(server.jetty.wait(10ms).size() == 1);
}

TEST_CASE(
    "a peer that forgot this device and comes back begins anew, though it is remembered here") {
  SimHosts hosts("begins-anew");
  auto server = hosts.start("", {.berths = 8, .receives = 16});
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(server.device.endpoint()));
  std::vector<std::byte> inbox(4096);
  for (uint64_t tag = 0; tag < 8; ++tag) REQUIRE(server.jetty.receive(inbox, tag));
  TaRequest message = message_request(server);
  message.base.rc_id = 5000;
  const auto bytes = bytes_like(100);
  for (uint32_t acquaintance = 1; acquaintance <= 3; ++acquaintance) {
    stranger.acquaintance = acquaintance;
    REQUIRE(stranger.connect(server.device.endpoint()));
    // In each acquaintance the same TASSN is a new message. On a second channel of the same
    // acquaintance it is a replay.
    for (uint32_t channel = 0; channel < 2; ++channel) {
      stranger.send({.slice = 1}, message, bytes);
      CHECK(server.jetty.wait(1ms).size() == (channel == 0 ? 1 : 0));
      REQUIRE(stranger.connect(server.device.endpoint()));
    }
  }
}

}  // namespace
}  // namespace urma::test
