// SPDX-License-Identifier: Apache-2.0
// S1: an attacker tries tokens as fast as the network carries its packets.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>

#include "tests/long_run.h"
#include "tests/sanitized.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// An owner, and a stranger that knows all of its segment except the TokenValue.
struct Siege {
  explicit Siege(const std::string& name)
      : hosts(name), owner(hosts.start("address=fd00::31")), segment(owner.segment.local()) {
    std::ranges::fill(owner.memory, std::byte{0});
  }

  // Writes `value` to the first byte, and runs the network for 50 us.
  void write(Stranger& who, TokenValue token, std::byte value) {
    TaRequest request;
    request.base.opcode = static_cast<uint8_t>(TaOpcode::write);
    request.base.tassn = slices & 0xffff;
    request.base.rc_id = 77;
    request.base.token_present = true;
    request.token.token = number(token);
    request.memory = {
        .address = segment.address, .token_id = number(segment.token_id), .length = 1};
    who.send({.slice = slices++ & 0xff'ffff}, request, std::span(&value, 1));
  }
  // Tries another wrong token with each call.
  void guess(Stranger& who) {
    if (++guessed == number(segment.token)) ++guessed;
    write(who, TokenValue(guessed), std::byte{1});
  }
  // Counts the slices that were answered since the last call. The owner repeats answers that the
  // stranger does not acknowledge.
  size_t answered(Stranger& who) {
    for (const Atah& answer : who.answers()) answers.insert(answer.tassn);
    return answers.size();
  }
  std::vector<EventKind> events() {
    std::vector<EventKind> kinds;
    std::array<Event, 8> some;
    while (const size_t count = owner.device.events(some)) {
      for (const Event& event : std::span(some).first(count)) kinds.push_back(event.kind);
    }
    return kinds;
  }
  bool told_of_guessing() {
    const auto kinds = events();
    return std::ranges::count(kinds, EventKind::guessing) > 0;
  }

  SimHosts hosts;
  SimHosts::Host owner;
  RemoteSegment segment;
  uint32_t guessed = 0;
  uint32_t slices = 1;
  std::set<uint32_t> answers{};
};

TEST_CASE("guessing: after 16 wrong tokens in a second requests are dropped without an answer") {
  Siege siege("g-silent");
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  for (int i = 0; i < 17; ++i) siege.guess(stranger);
  siege.hosts.run_for(1ms);
  CHECK(siege.answered(stranger) == 17);
  siege.hosts.run_for(10ms);
  CHECK(siege.told_of_guessing());
  CHECK(siege.owner.device.stats().value().refused == 17);
  // A write with the right token is dropped, too.
  for (int i = 0; i < 100; ++i) siege.write(stranger, siege.segment.token, std::byte{2});
  siege.hosts.run_for(1ms);
  CHECK(siege.answered(stranger) == 17);
  CHECK(siege.owner.memory[0] == std::byte{0});
  CHECK(siege.owner.device.stats().value().ignored == 100);
  // By then requests are accepted again.
  siege.hosts.run_for(100ms);
  siege.write(stranger, siege.segment.token, std::byte{2});
  siege.hosts.run_for(1ms);
  CHECK(siege.answered(stranger) == 18);
  CHECK(siege.owner.memory[0] == std::byte{2});
}

TEST_CASE("guessing: for slices of several packets, the last answer is the same as the others") {
  Siege siege("g-last");
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  const std::vector<std::byte> data(Stranger::mtu, std::byte{1});
  std::set<std::pair<Response, uint8_t>> said;
  for (uint32_t guess = 1; guess <= 20; ++guess) {
    TaRequest request;
    request.base.opcode = static_cast<uint8_t>(TaOpcode::write);
    request.base.tassn = siege.slices & 0xffff;
    request.base.rc_id = 77;
    request.base.token_present = true;
    request.token.token = number(siege.segment.token) ^ guess;
    for (const uint32_t at : {0u, Stranger::mtu}) {
      request.memory = {.address = siege.segment.address + at,
                        .token_id = number(siege.segment.token_id),
                        .length = 2 * Stranger::mtu};
      stranger.send({.slice = siege.slices & 0xff'ffff, .last = at > 0}, request, data);
    }
    ++siege.slices;
    siege.hosts.run_for(1ms);
    for (const Atah& answer : stranger.answers()) said.emplace(answer.status, answer.info);
  }
  CHECK(siege.owner.device.stats().value().refused == 17);
  CHECK(said.size() == 1);
}

// The bytes of the packets with the right token are written, although the rest of the slice never
// comes.
TEST_CASE("guessing: a wrong token counts even if the rest of its slice is never sent") {
  Siege siege("g-part");
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  const std::vector<std::byte> data(Stranger::mtu, std::byte{0});
  const RemoteJetty jetty = siege.owner.jetty.local();
  const auto opcode = GENERATE(TaOpcode::write, TaOpcode::send);
  const bool to_memory = opcode == TaOpcode::write;
  const uint32_t right_before =
      to_memory ? GENERATE(0u, 1u) : 0u;  // packets of the slice with the right token
  for (uint32_t guess = 1; guess <= 17; ++guess, ++siege.slices) {
    TaRequest request;
    request.base.opcode = static_cast<uint8_t>(opcode);
    request.base.tassn = siege.slices & 0xffff;
    request.base.rc_id = 77;
    request.base.token_present = true;
    request.target.target = number(jetty.id);
    for (uint32_t packet = 0; packet <= right_before; ++packet) {
      request.token.token = number(to_memory ? siege.segment.token : jetty.token);
      if (packet == right_before) request.token.token ^= guess;
      request.memory = {.address = siege.segment.address + packet * Stranger::mtu,
                        .token_id = number(siege.segment.token_id),
                        .length = 3 * Stranger::mtu};
      stranger.send({.slice = siege.slices & 0xff'ffff, .last = false}, request, data);
    }
  }
  siege.hosts.run_for(10ms);
  CHECK(siege.told_of_guessing());
  siege.write(stranger, siege.segment.token, std::byte{2});
  siege.hosts.run_for(1ms);
  CHECK(siege.owner.memory[0] == std::byte{0});
  CHECK(siege.owner.device.stats().value().ignored == 1);
}

// Apart from the token, everything about each operation is correct.
TEST_CASE("guessing: a wrong token counts in every operation and in every field for a token") {
  Siege siege("g-places");
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  const RemoteJetty jetty = siege.owner.jetty.local();
  std::vector<std::byte> buffer(8);
  for (int i = 0; i < 2; ++i) REQUIRE(siege.owner.jetty.receive(buffer, 1));
  const uint64_t words = (siege.segment.address + 7) / 8 * 8;
  const std::array<std::byte, 8> data = {std::byte{1}};
  const auto to_memory = [&](TaRequest& request, uint32_t length, TokenValue token) {
    request.memory = {
        .address = words, .token_id = number(siege.segment.token_id), .length = length};
    request.token.token = number(token);
  };
  const TokenValue right = siege.segment.token;
  TaOpcode opcode = TaOpcode::write;
  std::function<void(TaRequest&, TokenValue)>
      fill;  // writes the token that is tried into the request
  SECTION("write") {
    fill = [&](TaRequest& request, TokenValue token) { to_memory(request, 8, token); };
  }
  SECTION("read") {
    opcode = TaOpcode::read;
    fill = [&](TaRequest& request, TokenValue token) { to_memory(request, 8, token); };
  }
  SECTION("fetch_add") {
    opcode = TaOpcode::fetch_add;
    fill = [&](TaRequest& request, TokenValue token) { to_memory(request, 8, token); };
  }
  SECTION("atomic_store") {
    opcode = TaOpcode::atomic_store;
    fill = [&](TaRequest& request, TokenValue token) { to_memory(request, 8, token); };
  }
  SECTION("write_notify, the token of the data") {
    opcode = TaOpcode::write_notify;
    fill = [&](TaRequest& request, TokenValue token) {
      to_memory(request, 8, token);
      request.notify = {
          .address = words, .token_id = number(siege.segment.token_id), .token = number(right)};
    };
  }
  SECTION("write_notify, the token of the notification") {
    opcode = TaOpcode::write_notify;
    fill = [&](TaRequest& request, TokenValue token) {
      to_memory(request, 8, right);
      request.notify = {
          .address = words, .token_id = number(siege.segment.token_id), .token = number(token)};
    };
  }
  SECTION("write_notify without data") {
    opcode = TaOpcode::write_notify;
    fill = [&](TaRequest& request, TokenValue token) {
      request.notify = {
          .address = words, .token_id = number(siege.segment.token_id), .token = number(token)};
    };
  }
  SECTION("send") {
    opcode = TaOpcode::send;
    fill = [&](TaRequest& request, TokenValue token) {
      request.target.target = number(jetty.id);
      request.token.token = number(token);
    };
  }
  SECTION("write_immediate, the token of its Jetty") {
    opcode = TaOpcode::write_immediate;
    fill = [&](TaRequest& request, TokenValue token) {
      to_memory(request, 8, right);
      request.target.target = number(jetty.id);
      request.immediate.token = number(token);
    };
  }
  for (uint32_t guess = 1; guess <= 50; ++guess) {
    TaRequest request;
    request.base.opcode = static_cast<uint8_t>(opcode);
    request.base.tassn = siege.slices & 0xffff;
    request.base.rc_id = 77;
    request.base.token_present = true;
    fill(request, TokenValue(guess));
    const bool carries = request.memory.length > 0 && opcode != TaOpcode::read;
    const auto carried = std::span(data).first(carries ? data.size() : 0);
    stranger.send({.slice = siege.slices++ & 0xff'ffff}, request, carried);
    siege.hosts.run_for(1ms);
  }
  CHECK(siege.owner.device.stats().value().ignored == 50 - 17);
  CHECK(siege.told_of_guessing());
}

TEST_CASE("guessing: a further incarnation at the same address has one try") {
  Siege siege("g-lives");
  for (uint64_t life = 1; life <= 3; ++life) {
    Stranger stranger(siege.hosts, "fd00::66");
    stranger.life = life;
    stranger.acquaintance = static_cast<uint32_t>(life);
    REQUIRE(stranger.connect(siege.owner.device.endpoint()));
    for (int i = 0; i < 30; ++i) siege.guess(stranger);
    siege.hosts.run_for(1ms);
    CHECK(siege.owner.device.stats().value().refused == 17 + life - 1);
  }
}

TEST_CASE("guessing: a slice of which packets came before and during the block is dropped") {
  Siege siege("g-parts");
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  TaRequest request;
  request.base.opcode = static_cast<uint8_t>(TaOpcode::write);
  request.base.rc_id = 78;
  request.base.token_present = true;
  request.token.token = number(siege.segment.token);
  request.memory = {.address = siege.segment.address,
                    .token_id = number(siege.segment.token_id),
                    .length = 3 * Stranger::mtu};
  const std::vector<std::byte> data(Stranger::mtu, std::byte{5});
  const auto part = [&](uint32_t index) {
    TaRequest one = request;
    one.memory.address += uint64_t{index} * Stranger::mtu;
    stranger.send({.slice = 0, .last = index == 2}, one, data);
  };
  part(0);
  siege.hosts.run_for(1ms);
  CHECK(siege.owner.memory[0] == std::byte{5});
  for (int i = 0; i < 17; ++i) siege.guess(stranger);
  part(1);
  siege.hosts.run_for(200ms);  // requests are accepted again, but this slice was dropped
  part(2);
  siege.hosts.run_for(1ms);
  CHECK(siege.answered(stranger) == 17);
  CHECK(siege.owner.memory[Stranger::mtu] == std::byte{0});
  CHECK(siege.owner.memory[2 * Stranger::mtu] == std::byte{0});
  CHECK(siege.owner.device.stats().value().ignored == 1);
}

// Returns the number of guesses; with URMA_LONG it is the 10^8 of S1.
int most_guesses() { return long_run() ? 100'000'000 : sanitized ? 100'000 : 1'000'000; }

TEST_CASE("guessing: a million guesses find no token, and do not slow the works of others") {
  const int guesses = most_guesses();
  Siege siege("g-million");
  SimHosts::Host victim = siege.hosts.start("address=fd00::32");
  const std::vector<std::byte> bytes = bytes_like(1000);
  std::vector<std::byte> theirs(4096);
  Segment other = siege.owner.device.register_memory(theirs).value();
  const RemoteSegment there = victim.device.import(other.descriptor()).value().segment;
  Stranger stranger(siege.hosts, "fd00::66");
  REQUIRE(stranger.connect(siege.owner.device.endpoint()));
  uint64_t ended = 0;
  uint64_t failed = 0;
  int outstanding = 0;
  const auto work = [&] {
    std::array<Completion, 8> some;
    for (const Completion& one : std::span(some).first(victim.jetty.poll(some))) {
      failed += !one.ok();
      ++ended;
      --outstanding;
    }
    for (; outstanding < 4; ++outstanding)
      REQUIRE(victim.jetty.post(urma::write(bytes, there)) == 1);
  };
  const auto rate = [&](Duration time) {
    const uint64_t before = ended;
    for (const Time begun = siege.hosts.now(); siege.hosts.now() - begun < time;) {
      siege.hosts.run_for(1ms);
      work();
    }
    return static_cast<double>(ended - before) / std::chrono::duration<double>(time).count();
  };
  work();
  rate(100ms);
  const double alone = rate(500ms);
  const Time begun = siege.hosts.now();
  const uint64_t before = ended;
  for (int i = 0; i < guesses; ++i) {
    siege.guess(stranger);
    if (i % 20 == 19) work();
    if (i % 256 == 255) stranger.answers();
  }
  const double seconds = std::chrono::duration<double>(siege.hosts.now() - begun).count();
  const double besieged = static_cast<double>(ended - before) / seconds;
  const Statistics statistics = siege.owner.device.stats().value();
  std::printf(
      "%d guesses in %.0f s: %llu compared with the token (%.1f/s: 2^31 take %.0f years); works of "
      "others: %.0f a second alone, %.0f meanwhile\n",
      guesses, seconds, static_cast<unsigned long long>(statistics.refused),
      static_cast<double>(statistics.refused) / seconds,
      2147483648.0 * seconds / static_cast<double>(statistics.refused) / 86400 / 365, alone,
      besieged);
  CHECK(siege.owner.memory[0] == std::byte{0});
  CHECK(statistics.refused + statistics.ignored == static_cast<uint64_t>(guesses));
  CHECK(static_cast<double>(statistics.refused) < 17 * (seconds / 5 + 10));
  CHECK(failed == 0);
  CHECK(besieged >= 0.95 * alone);
  CHECK(siege.told_of_guessing());
}

}  // namespace
}  // namespace urma::test
