// SPDX-License-Identifier: Apache-2.0
// Messages to groups of Jetties: one member receives each, whatever is lost on the way.

#include <map>
#include <optional>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// A host with a group of Jetties, and one that sends to the group.
struct Grouped {
  static constexpr uint32_t receives = 8;
  static constexpr size_t message_bytes = 64 * 1024;

  SimHosts hosts;
  SimHosts::Host here;
  SimHosts::Host there;
  std::optional<JettyGroup> group;
  std::vector<Jetty> members;
  std::vector<std::vector<std::byte>> inboxes;  // by tag; tag / receives is the member
  RemoteJetty target;

  explicit Grouped(const std::string& name, GroupPolicy policy = GroupPolicy::round_robin,
                   const std::string& path = "")
      : hosts(name),
        here(hosts.start(path)),
        there(hosts.start(path)),
        group(there.device.jetty_group({.policy = policy}).value()),
        inboxes(3 * receives, std::vector<std::byte>(message_bytes)) {
    for (int i = 0; i < 3; ++i) {
      members.push_back(there.device.jetty({.berths = 16, .receives = receives}).value());
      group->add(members.back()).value();
    }
    target = here.device.import(group->descriptor()).value().jetty;
  }
  Imported memory() { return here.device.import(there.segment.descriptor()).value(); }
  void offer(size_t member, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t tag = member * receives + i;
      REQUIRE(members[member].receive(inboxes[tag], tag));
    }
  }
  // Returns how many messages the member has received since the last call.
  size_t received(size_t member) {
    std::array<Completion, receives> out;
    const size_t count = members[member].poll(out);
    for (size_t i = 0; i < count; ++i) {
      CHECK(out[i].ok());
      CHECK(out[i].jetty == members[member].id());
    }
    return count;
  }
  std::vector<size_t> received() { return {received(0), received(1), received(2)}; }
  Status status_of_send(size_t bytes = 100) {
    return status_of(here.jetty, send(bytes_like(bytes), target), 5s);
  }
};

TEST_CASE("each message to a group arrives once, whole, at one member, despite loss") {
  Grouped world("group-loss", GroupPolicy::round_robin, "loss=5%&reorder=5%&mtu=1024");
  for (size_t i = 0; i < 3; ++i) world.offer(i, Grouped::receives);
  constexpr uint64_t messages = 600;
  const auto bytes = bytes_like(5000, 1);
  uint64_t posted = 0;
  uint64_t done = 0;
  std::map<uint64_t, uint32_t> seen;
  std::vector<uint64_t> shares(3);
  const Time until = world.hosts.now() + 20s;
  while ((done < messages || seen.size() < messages) && world.hosts.now() < until) {
    while (posted < messages &&
           world.here.jetty.post(send(bytes, world.target).immediate(posted)) == 1) {
      ++posted;
    }
    for (const Completion& completion : world.here.jetty.wait(100us)) {
      REQUIRE(completion.ok());
      ++done;
    }
    for (size_t member = 0; member < 3; ++member) {
      std::array<Completion, Grouped::receives> out;
      for (size_t i = 0, count = world.members[member].poll(out); i < count; ++i) {
        REQUIRE(out[i].ok());
        CHECK(out[i].jetty == world.members[member].id());
        CHECK(out[i].from_jetty == world.here.jetty.id());
        CHECK(out[i].tag / Grouped::receives == member);
        auto& inbox = world.inboxes[out[i].tag];
        CHECK(same(std::span(inbox).first(out[i].bytes), bytes));
        CHECK(++seen[out[i].immediate] == 1);
        ++shares[member];
        REQUIRE(world.members[member].receive(inbox, out[i].tag));
      }
    }
  }
  CHECK(done == messages);
  CHECK(seen.size() == messages);
  for (const uint64_t share : shares) CHECK(share > messages / 6);
}

TEST_CASE("members of a group receive in turn; one without buffers is passed over") {
  Grouped world("group-turns");
  for (size_t i = 0; i < 3; ++i) world.offer(i, 4);
  for (int i = 0; i < 6; ++i) REQUIRE(world.status_of_send() == Status::ok);
  CHECK(world.received() == std::vector<size_t>{2, 2, 2});
  world.offer(1, 4);
  for (int i = 0; i < 8; ++i) REQUIRE(world.status_of_send() == Status::ok);
  CHECK(world.received() == std::vector<size_t>{2, 4, 2});
}

TEST_CASE("a message to a group waits until a member posts a buffer") {
  Grouped world("group-waits");
  const auto bytes = bytes_like(3000);
  REQUIRE(world.here.jetty.post(send(bytes, world.target)) == 1);
  CHECK(world.here.jetty.wait(3s).empty());  // longer than the operation time-out
  world.offer(1, 1);
  CHECK(only_status(world.here.jetty, 5s) == Status::ok);
  CHECK(world.received() == std::vector<size_t>{0, 1, 0});
}

TEST_CASE("messages of one hint reach one member, which they wait for") {
  Grouped world("group-hints", GroupPolicy::hint);
  for (size_t i = 0; i < 2; ++i) world.offer(i, 6);
  const auto bytes = bytes_like(100);
  for (const uint8_t hint : std::initializer_list<uint8_t>{0, 3, 6, 1, 4, 255}) {
    REQUIRE(status_of(world.here.jetty, send(bytes, world.target).hint(hint), 5s) == Status::ok);
  }
  CHECK(world.received() == std::vector<size_t>{4, 2, 0});
  REQUIRE(world.here.jetty.post(send(bytes, world.target).hint(2)) == 1);
  CHECK(world.here.jetty.wait(1s).empty());
  world.offer(2, 1);
  CHECK(only_status(world.here.jetty, 5s) == Status::ok);
  CHECK(world.received() == std::vector<size_t>{0, 0, 1});
}

TEST_CASE("the member with most buffers receives") {
  Grouped world("group-most", GroupPolicy::most_receives);
  world.offer(0, 2);
  world.offer(1, 5);
  for (int i = 0; i < 5; ++i) REQUIRE(world.status_of_send() == Status::ok);
  CHECK(world.received() == std::vector<size_t>{1, 4, 0});
}

TEST_CASE("a write with an immediate to a group takes a permit of one member") {
  Grouped world("group-immediate");
  const Imported memory = world.memory();
  const auto bytes = bytes_like(10);
  for (uint64_t i = 0; i < 6; ++i) {
    REQUIRE(status_of(world.here.jetty,
                      write(bytes, memory.segment, i * 10).to(world.target).immediate(i),
                      5s) == Status::ok);
  }
  CHECK(world.received() == std::vector<size_t>{2, 2, 2});
}

TEST_CASE("members that were destroyed, flushed or removed receive nothing more") {
  Grouped world("group-leaves");
  for (size_t i = 0; i < 3; ++i) world.offer(i, 4);
  world.members[1].flush().value();
  std::array<Completion, 8> flushed;
  CHECK(world.members[1].poll(flushed) == 4);
  for (int i = 0; i < 4; ++i) REQUIRE(world.status_of_send() == Status::ok);
  CHECK(world.received() == std::vector<size_t>{2, 0, 2});
  world.group->remove(world.members[0]).value();
  CHECK(world.group->remove(world.members[0]).error().status == Status::not_found);
  for (int i = 0; i < 2; ++i) REQUIRE(world.status_of_send() == Status::ok);
  CHECK(world.received() == std::vector<size_t>{0, 0, 2});
  world.members.erase(world.members.begin() + 2);
  CHECK(world.status_of_send() == Status::remote_unsupported);
  // The places of members that do not exist any more are taken by new ones.
  for (uint32_t i = 0; i < max_group_members - 1; ++i) {
    world.members.push_back(world.there.device.jetty({.berths = 0, .receives = 1}).value());
    world.group->add(world.members.back()).value();
  }
  const Result<void> again = world.group->add(world.members.back());
  CHECK(again.error().status == Status::invalid_argument);
  world.members.push_back(world.there.device.jetty({.berths = 0, .receives = 1}).value());
  CHECK(world.group->add(world.members.back()).error().status == Status::no_resources);
}

TEST_CASE("a member destroyed while a message arrives refuses it; the next one is received") {
  Grouped world("group-destroyed", GroupPolicy::round_robin, "delay=100us&mtu=1024");
  world.offer(0, 1);
  world.offer(1, 1);
  const auto bytes = bytes_like(Grouped::message_bytes);
  REQUIRE(status_of(world.here.jetty, write(bytes_like(8), world.memory().segment), 1s) ==
          Status::ok);
  REQUIRE(world.here.jetty.post(send(bytes, world.target)) == 1);
  while (world.inboxes[0][0] != bytes[0] || world.inboxes[0][1] != bytes[1]) {
    world.hosts.run_for(1us);
  }
  REQUIRE(world.inboxes[0].back() != bytes.back());
  world.members.erase(world.members.begin());
  CHECK(only_status(world.here.jetty, 1s) == Status::remote_access);
  CHECK(status_of(world.here.jetty, send(bytes, world.target), 5s) == Status::ok);
  CHECK(world.received(0) == 1);
  CHECK(world.inboxes[Grouped::receives] == bytes);
}

TEST_CASE("a group is reached by its own number and token alone, until it is destroyed") {
  Grouped world("group-token");
  for (size_t i = 0; i < 3; ++i) world.offer(i, 4);
  const auto bytes = bytes_like(100);
  RemoteJetty forged = world.target;
  forged.token = world.here.device.import(world.members[0].descriptor()).value().jetty.token;
  CHECK(status_of(world.here.jetty, send(bytes, forged), 1s) == Status::remote_access);
  // Its number does not name a Jetty, nor the number of a Jetty a group.
  forged = world.target;
  forged.id = without_group_bit(forged.id);
  CHECK(status_of(world.here.jetty, send(bytes, forged), 1s) == Status::remote_unsupported);
  forged = world.here.device.import(world.members[0].descriptor()).value().jetty;
  forged.id = JettyId(number(forged.id) | group_bit);
  CHECK(status_of(world.here.jetty, send(bytes, forged), 1s) == Status::remote_access);
  CHECK(world.received() == std::vector<size_t>{0, 0, 0});
  world.group.reset();
  CHECK(world.status_of_send() == Status::remote_access);
  CHECK(world.received() == std::vector<size_t>{0, 0, 0});
}

TEST_CASE("a datagram to a group is received by one member, or dropped") {
  Grouped world("group-datagram");
  Jetty sender = world.here.device.jetty({.mode = ServiceMode::unreliable}).value();
  const auto bytes = bytes_like(500);
  REQUIRE(sender.post(send(bytes, world.target)) == 1);
  CHECK(only_status(sender, 1s) == Status::ok);
  world.hosts.run_for(10ms);
  CHECK(world.received() == std::vector<size_t>{0, 0, 0});
  for (size_t i = 0; i < 3; ++i) world.offer(i, 1);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(sender.post(send(bytes, world.target)) == 1);
    CHECK(only_status(sender, 1s) == Status::ok);
    world.hosts.run_for(10ms);
  }
  CHECK(world.received() == std::vector<size_t>{1, 1, 1});
}

TEST_CASE("strong works to a group are executed in order, though members take turns") {
  Grouped world("group-order", GroupPolicy::round_robin, "loss=10%&reorder=10%&mtu=1024");
  for (size_t i = 0; i < 3; ++i) world.offer(i, Grouped::receives);
  constexpr uint64_t messages = 24;
  const auto bytes = bytes_like(3000);
  for (uint64_t i = 0; i < messages; ++i) {
    REQUIRE(world.here.jetty.post(send(bytes, world.target).immediate(i).strong()) == 1);
  }
  for (const auto& [status, count] : statuses_of(world.here.jetty, messages)) {
    CHECK(status == Status::ok);
    CHECK(count == messages);
  }
  // In order, and each in its turn: member i has received i, i + 3, i + 6 and so on.
  for (uint64_t i = 0; i < messages; ++i) {
    Completion arrival;
    REQUIRE(world.members[i % 3].poll({&arrival, 1}) == 1);
    CHECK(arrival.immediate == i);
  }
}

}  // namespace
}  // namespace urma::test
