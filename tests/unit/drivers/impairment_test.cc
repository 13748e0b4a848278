// SPDX-License-Identifier: Apache-2.0
#include "drivers/impairment.h"

#include <bit>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::Impairment;
using drivers::OptionReader;

struct Totals {
  int packets = 0, lost = 0, doubled = 0, copies = 0, corrupt = 0, late = 0;
  Duration least = Duration::max(), most{};
};

// Decides about this many packets, and counts the decisions. `late` counts the copies that are
// delayed by more than delay and jitter.
Totals run(const Impairment& impairment, int packets = 20'000) {
  Prng prng(1);
  Totals totals;
  for (; totals.packets < packets; ++totals.packets) {
    const auto fate = impairment.decide(prng);
    REQUIRE(fate.count <= 2);  // no replays were asked for
    totals.lost += fate.count == 0;
    totals.doubled += fate.count == 2;
    for (size_t i = 0; i < fate.count; ++i) {
      const auto& copy = fate.copies[i];
      ++totals.copies;
      totals.corrupt += copy.corrupt;
      totals.late += copy.delay > impairment.delay + impairment.jitter;
      totals.least = std::min(totals.least, copy.delay);
      totals.most = std::max(totals.most, copy.delay);
    }
  }
  return totals;
}

bool about(int count, double expected) {
  return count > expected * 0.85 && count < expected * 1.15;
}

TEST_CASE("without impairment every packet arrives once, unchanged and without delay") {
  const Impairment nothing;
  CHECK(nothing.none());
  const Totals totals = run(nothing);
  CHECK(totals.copies == totals.packets);
  CHECK(totals.doubled + totals.lost + totals.corrupt == 0);
  CHECK(totals.most == 0ns);
}

TEST_CASE("loss, duplication and corruption with a chance of 1 happen to each packet") {
  CHECK(run({.loss = 1}).copies == 0);
  CHECK(run({.duplicate = 1}).doubled == 20'000);
  CHECK(run({.duplicate = 1, .corrupt = 1}).corrupt == 40'000);
}

TEST_CASE("each fault occurs as often as its option says, independently of the others") {
  const Totals totals = run({.loss = 0.1, .duplicate = 0.2, .corrupt = 0.3, .reorder = 0.05});
  CHECK(about(totals.lost, 20'000 * 0.1));
  CHECK(about(totals.doubled, 20'000 * 0.9 * 0.2));
  CHECK(about(totals.corrupt, totals.copies * 0.3));
  CHECK(about(totals.late, totals.copies * 0.05));
}

TEST_CASE("jitter is uniform and added to the delay; reordering delays further") {
  const Totals steady = run({.delay = 3ms});
  CHECK(steady.least == 3ms);
  CHECK(steady.most == 3ms);
  const Totals spread = run({.delay = 3ms, .jitter = 1ms});
  CHECK(spread.least >= 3ms);
  CHECK(spread.least < 3ms + 10us);
  CHECK(spread.most < 4ms);
  CHECK(spread.most > 4ms - 10us);
  CHECK(run({.reorder = 1, .delay = 1ms, .reorder_by = 5ms}).least == 6ms);
}

TEST_CASE("an impairment that is off draws no random number, so seeds stay comparable") {
  Prng one(4), two(4);
  for (int i = 0; i < 100; ++i) (void)Impairment{.delay = 5ms}.decide(one);
  CHECK(one.next() == two.next());
}

TEST_CASE("every impairment has an option, and each alone counts as an impairment") {
  for (const std::string option :
       {"loss=5%", "dup=5%", "corrupt=5%", "reorder=5%", "delay=1ms", "jitter=1ms", "burst=1%",
        "replay=1%", "hole_for=1ms", "rate=1Gbit"}) {
    INFO(option);
    const auto device = drivers::parse_device_string("fault(" + option + "):udp:");
    REQUIRE(device);
    Impairment impairment;
    OptionReader reader(*device);
    impairment.read_options(reader);
    CHECK(reader.finish());
    CHECK_FALSE(impairment.none());
  }
  const auto device = drivers::parse_device_string("fault(up_loss=5%,reorder_by=7us):udp:");
  Impairment up, both;
  OptionReader reader(*device);
  up.read_options(reader, "up_");
  both.read_options(reader);
  CHECK(reader.finish());
  CHECK(up.loss == 0.05);
  CHECK(both.loss == 0);
  CHECK(both.reorder_by == 7us);
}

// ---- what a line remembers

using drivers::ImpairedLine;

struct Data {
  uint32_t psn = 0;
  uint32_t slice = 0;
  bool last = false;
  uint8_t opcode = 1;
};
std::array<std::byte, 16> packet_of(const Data& data) {
  std::array<std::byte, 16> bytes{};
  bytes[0] = static_cast<std::byte>(data.last << 7 | data.opcode);
  bytes[7] = std::byte{9};
  for (unsigned i = 0; i < 3; ++i) {
    bytes[11 - i] = static_cast<std::byte>(data.psn >> 8 * i);
    bytes[15 - i] = static_cast<std::byte>(data.slice >> 8 * i);
  }
  return bytes;
}

// Returns for each packet of 100 bytes, sent one after another without pauses, whether it is lost.
std::string lost(const Impairment& impairment, const std::vector<Data>& packets) {
  Prng prng(1);
  ImpairedLine line;
  std::string out;
  for (const Data& data : packets) {
    const auto bytes = packet_of(data);
    out += line.decide(impairment, bytes, 100, Time{}, prng).count == 0 ? "x" : ".";
  }
  return out;
}

TEST_CASE("only data, acknowledgements, or the first and last packets of slices are lost") {
  using Only = Impairment::Only;
  const std::vector<Data> packets = {{.opcode = 0},
                                     {.psn = 0xfffffe, .slice = 1},
                                     {.psn = 0xffffff, .slice = 1},
                                     {.opcode = 2},
                                     {.psn = 0, .slice = 1, .last = true},
                                     {.psn = 1, .slice = 2, .last = true},
                                     // These packets are sent again, out of order and at the end.
                                     {.psn = 0, .slice = 1, .last = true},
                                     {.opcode = 5},
                                     {.psn = 0xfffffe, .slice = 1},
                                     {.psn = 1, .slice = 2, .last = true},
                                     {.psn = 2, .slice = 3}};
  CHECK(lost({.loss = 1, .only = Only::all}, packets) == "xxxxxxxxxxx");
  CHECK(lost({.loss = 1, .only = Only::data}, packets) == ".xx.xxx.xxx");
  CHECK(lost({.loss = 1, .only = Only::acks}, packets) == "...x...x...");
  CHECK(lost({.loss = 1, .only = Only::first}, packets) == ".x...x....x");
  CHECK(lost({.loss = 1, .only = Only::last}, packets) == "....xx.....");
  CHECK(lost({.only = Only::last, .burst = 1}, packets) == "....xx.....");
}

TEST_CASE("bursts begin as often, and last as long, as they should") {
  constexpr int packets = 200'000;
  const std::string fates = lost({.burst = 0.01, .burst_length = 20}, std::vector<Data>(packets));
  int bursts = 0;
  int gone = 0;
  for (size_t i = 0; i < fates.size(); ++i) {
    gone += fates[i] == 'x';
    bursts += fates[i] == 'x' && (i == 0 || fates[i - 1] == '.');
  }
  CHECK(about(bursts, (packets - gone) * 0.01));
  CHECK(about(gone, bursts * 20.0));
}

TEST_CASE("a black hole begins after a while, loses all packets, and ends") {
  Prng prng(1);
  ImpairedLine line;
  const Impairment hole{.hole_after = 10ms, .hole_for = 5ms};
  for (int ms = 100; ms < 130; ++ms) {
    INFO(ms);
    const bool gone = line.decide(hole, {}, 100, Time(ms * 1ms), prng).count == 0;
    CHECK(gone == (ms >= 110 && ms < 115));
  }
}

TEST_CASE("a line of limited rate delays each packet, and drops those that its queue cannot hold") {
  Prng prng(1);
  ImpairedLine line;
  // 1 us for each byte.
  const Impairment slow{.bits_per_second = 8'000'000, .queue_bytes = 300};
  const auto send = [&](Time now) { return line.decide(slow, {}, 100, now, prng); };
  for (int i = 1; i <= 4; ++i) {
    const auto fate = send(Time{});
    REQUIRE(fate.count == 1);
    CHECK(fate.copies[0].delay == i * 100us);
  }
  CHECK(send(Time{}).count == 0);
  CHECK(send(Time(100us)).copies[0].delay == 400us);
  CHECK(send(Time(10ms)).copies[0].delay == 100us);
}

TEST_CASE("a packet behind more waiting bytes than mark= is marked, if it may be") {
  Prng prng(4);
  Prng same(4);
  ImpairedLine line;
  // 1 us for each byte.
  const Impairment slow{.bits_per_second = 8'000'000, .queue_bytes = 300, .mark_bytes = 150};
  const auto send = [&](Time now) { return line.decide(slow, {}, 100, now, prng); };
  for (const bool marked : {false, false, true, true}) {
    const auto fate = send(Time{});
    REQUIRE(fate.count == 1);
    CHECK(fate.marked == marked);
    CHECK(fate.arriving(Ecn::not_ect) == Ecn::not_ect);
    CHECK(fate.arriving(Ecn::ect0) == (marked ? Ecn::ce : Ecn::ect0));
    CHECK(fate.arriving(Ecn::ect1) == (marked ? Ecn::ce : Ecn::ect1));
    CHECK(fate.arriving(Ecn::ce) == Ecn::ce);
  }
  CHECK(send(Time{}).count == 0);
  CHECK(send(Time(250us)).marked == false);  // 150 bytes wait
  CHECK(send(Time(10ms)).marked == false);
  CHECK(prng.next() == same.next());
}

TEST_CASE("a replay is a further copy, much later") {
  Prng prng(1);
  const auto fate =
      Impairment{.duplicate = 1, .delay = 1ms, .replay = 1, .replay_by = 7ms}.decide(prng);
  REQUIRE(fate.count == 3);
  CHECK(fate.copies[1].delay == 1ms);
  CHECK(fate.copies[2].delay == 8ms);
}

TEST_CASE("invalid options are refused, with the valid ones") {
  for (const std::string option :
       {"only=heads", "burst_length=0", "rate=1000", "rate=1G", "queue=1K", "rate=1bit"}) {
    INFO(option);
    const auto device = drivers::parse_device_string("fault(" + option + "):udp:");
    REQUIRE(device);
    Impairment impairment;
    OptionReader reader(*device);
    impairment.read_options(reader);
    CHECK_FALSE(reader.finish());
  }
}

TEST_CASE("marks that cannot be made are refused at their place, with what to do") {
  struct Case {
    std::string options;
    const char* at;
    const char* fix;
  };
  const Case cases[] = {
      {"loss=1%,mark=64K", "at character 15 (\"mark=64K):udp:\"): no packet waits",
       "Fix: give one too, such as rate=1Gbit"},
      {"in.mark=64K,rate=1Gbit", "at character 7 (\"in.mark=64K,rate=1Gbit):\")",
       "Fix: give one too, such as in.rate=1Gbit"},
      {"rate=1Gbit,mark=256K", "at character 18 (\"mark=256K):udp:\")",
       "Fix: lower mark, or give a larger queue"},
      {"rate=1Gbit,mark=0", "at character 23 (\"0):udp:\"): the value of mark must be a size",
       "Fix: "},
      {"rate=1Gbit,mark=2G", "the value of mark must be a size from 1 to", "Fix: "},
  };
  for (const Case& one : cases) {
    INFO(one.options);
    const auto device = drivers::parse_device_string("fault(" + one.options + "):udp:");
    REQUIRE(device);
    Impairment out;
    Impairment in;
    OptionReader reader(*device);
    out.read_options(reader);
    in.read_options(reader, "in.");
    const auto done = reader.finish();
    REQUIRE_FALSE(done);
    INFO(done.error().message);
    CHECK(mentions(done.error().message, one.at));
    CHECK(mentions(done.error().message, one.fix));
  }
}

int changed_bits(size_t bytes, Prng& prng) {
  std::vector<std::byte> packet(bytes + 1);
  Impairment::flip_bits(std::span(packet).first(bytes), prng);
  REQUIRE(packet[bytes] == std::byte{0});
  int changed = 0;
  for (const std::byte byte : packet) changed += std::popcount(static_cast<unsigned>(byte));
  return changed;
}

TEST_CASE("corruption changes 1 to 64 bits, small numbers most often, and each number occurs",
          "[numbers]") {
  Prng prng(1);
  std::array<int, 65> seen{};
  for (int round = 0; round < 64'000; ++round) {
    const int changed = changed_bits(1000, prng);
    REQUIRE(changed >= 1);
    REQUIRE(changed <= 64);
    ++seen[static_cast<size_t>(changed)];
  }
  for (size_t flips = 1; flips <= 4; ++flips) CHECK(about(seen[flips], 8000 + 500));
  for (size_t flips = 5; flips <= 64; ++flips) CHECK(about(seen[flips], 500));
}

// If a packet counted as corrupted were unchanged, an oracle would expect the ICRC to refuse a
// valid packet.
TEST_CASE("a corrupted packet always differs from the packet that was sent") {
  Prng prng(1);
  for (int round = 0; round < 20'000; ++round) REQUIRE(changed_bits(20, prng) > 0);
}

}  // namespace
}  // namespace urma::test
