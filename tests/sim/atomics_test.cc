// SPDX-License-Identifier: Apache-2.0
// Atomics by packets: each is executed once, whatever is lost, and its initiator gets the result.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/long_run.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// A host's segment of words. Each host has it besides its usual segment.
struct Words {
  explicit Words(Device& device, AtomicDomain domain = AtomicDomain::processor)
      : memory(512),
        segment(device
                    .register_memory(std::as_writable_bytes(std::span(memory)),
                                     Rights::read | Rights::atomic, domain)
                    .value()) {}
  RemoteSegment from(Device& device) const {
    return device.import(segment.descriptor()).value().segment;
  }

  std::vector<uint64_t> memory;
  Segment segment;
};

Completion run(SimHosts::Host& host, const Work& work) {
  REQUIRE(host.jetty.post(work) == 1);
  const auto completions = host.jetty.wait(5s);
  REQUIRE(completions.size() == 1);
  return completions[0];
}

TEST_CASE("each atomic is sent as a packet and returns the previous value of the word") {
  SimHosts hosts("atomics-each");
  auto here = hosts.start("delay=20us");
  auto there = hosts.start("delay=20us");
  for (const AtomicDomain domain : {AtomicDomain::processor, AtomicDomain::engine}) {
    Words words(there.device, domain);
    const RemoteSegment at = words.from(here.device);
    const auto check = [&](const Work& work, uint64_t before, uint64_t fetched, uint64_t after) {
      words.memory[3] = before;
      const Completion completion = run(here, work);
      CHECK(completion.status == Status::ok);
      CHECK(completion.operation == Operation::atomic);
      CHECK(completion.tag == 9);
      CHECK(completion.fetched() == fetched);
      CHECK(words.memory[3] == after);
    };
    constexpr uint64_t all = UINT64_MAX;
    check(fetch_add(at, 24, 5).tag(9), all, all, 4);
    check(fetch_sub(at, 24, 5).tag(9), 4, 4, all);
    check(fetch_and(at, 24, 0xf0).tag(9), 0xff, 0xff, 0xf0);
    check(fetch_or(at, 24, 0x0f).tag(9), 0xf0, 0xf0, 0xff);
    check(fetch_xor(at, 24, 0xff).tag(9), 0xf0, 0xf0, 0x0f);
    check(swap(at, 24, 77).tag(9), 5, 5, 77);
    check(compare_swap(at, 24, 5, 77).tag(9), 5, 5, 77);
    check(compare_swap(at, 24, 5, 77).tag(9), 6, 6, 6);
    check(atomic_load<int64_t>(at, 24, Update::signed_max, -3).tag(9), all, all, all);
    check(atomic_load(at, 24, Update::unsigned_min, 3).tag(9), all, all, 3);
    check(atomic_store(at, 24, Update::clear, 6).tag(9), 7, 0, 1);
    // This is a small part of a word, at its other end.
    check(fetch_add<uint8_t>(at, 31, 0xff).tag(9), uint64_t{3} << 56, 3, uint64_t{2} << 56);
    check(swap<uint16_t>(at, 30, 0xabcd).tag(9), 7, 0, 0xabcd'0000'0000'0007);
    check(compare_swap<int32_t>(at, 28, -1, 2).tag(9), 0xffff'ffff'0000'0000, 0xffff'ffff,
          0x2'0000'0000);
  }
  CHECK(there.device.stats().value().refused == 0);
}

TEST_CASE("invalid atomics are refused and leave the word as it was") {
  SimHosts hosts("atomics-refused");
  auto here = hosts.start("delay=20us");
  auto there = hosts.start("delay=20us");
  Words words(there.device);
  const RemoteSegment at = words.from(here.device);
  // The descriptor claims a larger segment, so that the initiator does not find the mistake.
  RemoteSegment forged = at;
  forged.bytes += 8;
  CHECK(run(here, fetch_add(forged, at.bytes, 1)).status == Status::remote_access);
  forged = at;
  forged.token = TokenValue(number(at.token) ^ 1);
  CHECK(run(here, fetch_add(forged, 0, 1)).status == Status::remote_access);
  RemoteSegment plain = here.device.import(there.line).value().segment;
  plain.rights = Rights::atomic;
  CHECK(run(here, fetch_add(plain, 0, 1)).status == Status::remote_access);
  CHECK(there.memory[0] == std::byte{0});

  std::vector<uint64_t> some(512);
  const auto bytes = std::as_writable_bytes(std::span(some));
  const Segment guarded =
      there.device.register_memory(bytes, {.rights = Rights::atomic, .guarded = true}).value();
  const RemoteSegment may_go = here.device.import(guarded.descriptor()).value().segment;
  CHECK(run(here, fetch_add(may_go, 0, 1)).status == Status::remote_unsupported);
  CHECK(some[0] == 0);
  CHECK(words.memory[0] == 0);
  CHECK(there.device.register_memory(bytes, Rights::atomic, AtomicDomain::device).status() ==
        Status::unsupported);

  words.segment.unregister().value();
  CHECK(run(here, fetch_add(at, 0, 1)).status == Status::remote_access);
}

TEST_CASE("a device posts atomics on its own memory like any others") {
  SimHosts hosts("atomics-own");
  auto here = hosts.start();
  Words words(here.device, AtomicDomain::engine);
  CHECK(run(here, fetch_add(words.segment.local(), 8, 3)).fetched() == 0);
  CHECK(run(here, fetch_add(words.segment.local(), 8, 3)).fetched() == 3);
  CHECK(words.memory[1] == 6);
}

// More atomics are posted than the target keeps results of: the rest waits, and delays no other
// work.
TEST_CASE(
    "many concurrent atomics over a wire that loses, repeats and reorders execute once each") {
  for (const char* wire : {"delay=100us", "delay=100us&loss=5%&dup=5%&reorder=20%"}) {
    SimHosts hosts(std::string("atomics-many-") + (wire[11] == '&' ? "lossy" : "calm"));
    auto here = hosts.start(wire, {.berths = 512});
    auto there = hosts.start(wire);
    Words words(there.device);
    const RemoteSegment at = words.from(here.device);
    std::set<uint64_t> fetched;
    for (unsigned round = 0; round < 4; ++round) {
      std::vector<Work> works;
      for (unsigned i = 0; i < 500; ++i) works.push_back(fetch_add(at, 0, 1));
      REQUIRE(here.jetty.post(works) == 500);
      for (size_t count = 0; count < 500;) {
        const auto completions = here.jetty.wait(5s);
        REQUIRE_FALSE(completions.empty());
        count += completions.size();
        for (const Completion& completion : completions) {
          REQUIRE(completion.ok());
          REQUIRE(fetched.insert(completion.fetched()).second);
        }
      }
    }
    CHECK(words.memory[0] == 2000);
    CHECK(*fetched.rbegin() == 1999);
  }
}

// As in exactly_once_test.cc, from a moment at which some atomics have been executed and some have
// not, answers are lost until the channel is declared dead.
TEST_CASE("channels are killed between execution and answer: no atomic is executed again") {
  const unsigned rounds = long_run() ? 100 : 12;
  SimHosts hosts("atomics-killed");
  Prng prng(11);
  auto here = hosts.start("delay=50us&loss=1%", {.berths = 128}, {.operation_timeout = 20s});
  auto there = hosts.start("delay=50us&loss=1%");
  Words words(there.device);
  const RemoteSegment at = words.from(here.device);
  constexpr size_t counters = 4;
  std::map<uint64_t, Work> posted;
  uint64_t sum[counters] = {};        // of the atomics that ended ok
  uint64_t uncertain[counters] = {};  // of those that ended unknown
  std::set<std::pair<size_t, uint64_t>> fetched;
  uint64_t next_tag = 0;
  const auto drain = [&] {
    std::array<Completion, 128> out;
    for (const Completion& completion : std::span(out).first(here.jetty.poll(out))) {
      const auto of = posted.find(completion.tag);
      REQUIRE(of != posted.end());
      const size_t counter = of->second.offset / 8;
      posted.erase(of);
      if (completion.status == Status::unknown) {
        ++uncertain[counter];
      } else if (completion.ok()) {
        ++sum[counter];
        REQUIRE(fetched.emplace(counter, completion.fetched()).second);
      }
    }
  };
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 100; ++i) {
      const Work work = fetch_add(at, prng.below(counters) * 8, 1).tag(++next_tag);
      REQUIRE(here.jetty.post(work) == 1);
      posted.emplace(next_tag, work);
      if (i == 50) hosts.run_for(std::chrono::microseconds(prng.below(200)));
    }
    hosts.run_for(std::chrono::microseconds(prng.below(200)));
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), true);
    hosts.run_for(1600ms);
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), false);
    for (const Time begun = hosts.now(); !posted.empty();) {
      REQUIRE(hosts.now() - begun < 30s);
      hosts.run_for(1ms);
      drain();
    }
  }
  uint64_t ok = 0;
  for (size_t i = 0; i < counters; ++i) {
    INFO("counter " << i);
    CHECK(words.memory[i] >= sum[i]);
    CHECK(words.memory[i] <= sum[i] + uncertain[i]);
    ok += sum[i];
  }
  CHECK(ok > next_tag / 2);
  CHECK(here.device.stats().value().channels_lost >= rounds / 2);
  CHECK(there.device.stats().value().repeated > 0);
}

// Sends requests as another implementation would, and checks the answers to them.
TEST_CASE("a repeated atomic is answered with the same result; an invalid one is refused") {
  SimHosts hosts("atomics-stranger");
  auto server = hosts.start();
  Words words(server.device);
  words.memory[0] = 40;
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(server.device.endpoint()));
  const Descriptor line = parse_descriptor(words.segment.descriptor()).value();
  uint32_t slice = 0;
  const auto ask = [&](TaOpcode opcode, uint32_t tassn, uint64_t offset, uint32_t length,
                       size_t data) {
    TaRequest request;
    request.base = {.opcode = static_cast<uint8_t>(opcode),
                    .token_present = true,
                    .tassn = tassn,
                    .rc_id = 1024};
    request.memory = {.address = line.segment->address + offset,
                      .token_id = number(line.segment->id),
                      .length = length};
    request.token.token = number(line.segment->token);
    std::vector<std::byte> operands(data);
    if (data > 0) operands[0] = std::byte{2};
    stranger.send({.slice = ++slice}, request, operands);
    hosts.run_for(1ms);
    const auto answers = stranger.answers();
    return answers.empty() ? Atah{} : answers.back();
  };
  const auto is = [](const Atah& answer, TaOpcode opcode, Response status, uint8_t info) {
    return answer.opcode == static_cast<uint8_t>(opcode) && answer.status == status &&
           answer.info == info;
  };
  const auto response = TaOpcode::atomic_response;
  CHECK(is(ask(TaOpcode::fetch_add, 1, 0, 8, 8), response, Response::success, 0));
  CHECK(is(ask(TaOpcode::fetch_add, 1, 0, 8, 8), response, Response::success, 0));
  CHECK(words.memory[0] == 42);
  CHECK(server.device.stats().value().repeated == 1);
  const auto refused = static_cast<uint8_t>(CompleterError::unsupported_request);
  const auto error = Response::completer_error;
  CHECK(is(ask(TaOpcode::fetch_add, 2, 4, 8, 8), TaOpcode::answer, error, refused));
  CHECK(is(ask(TaOpcode::fetch_add, 3, 0, 16, 16), TaOpcode::answer, error, refused));
  CHECK(is(ask(TaOpcode::fetch_add, 4, 0, 0, 0), TaOpcode::answer, error, refused));
  // A packet whose operands have the wrong size is malformed, and is not answered.
  CHECK(ask(TaOpcode::compare_swap, 5, 0, 8, 8).opcode == 0);
  CHECK(ask(TaOpcode::swap, 6, 0, 8, 16).opcode == 0);
  CHECK(words.memory[0] == 42);
}

TEST_CASE("no atomics are sent to a peer that keeps no results") {
  SimHosts hosts("atomics-no-results");
  auto here = hosts.start();
  Stranger stranger(hosts, "2001:db8::66");
  REQUIRE(stranger.connect(here.device.endpoint()));
  Words words(here.device);
  Descriptor line = parse_descriptor(words.segment.descriptor()).value();
  line.at = stranger.at();
  line.eid = stranger.at().address;
  line.life = Incarnation(Stranger::a_life);
  const RemoteSegment at = here.device.import(to_string(line)).value().segment;
  for (const Atomic what : {Atomic::fetch_add, Atomic::compare_swap}) {
    const Work work = what == Atomic::fetch_add ? fetch_add(at, 0, 1) : compare_swap(at, 0, 0, 1);
    CHECK(run(here, work).status == Status::remote_unsupported);
  }
  CHECK(words.memory[0] == 0);
}

}  // namespace
}  // namespace urma::test
