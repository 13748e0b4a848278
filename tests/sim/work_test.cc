// SPDX-License-Identifier: Apache-2.0
// Works: every operation and size, refusals, receivers that are not ready, berths.

#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/processes/numbered_writes.h"
#include "tests/sanitized.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("writes, reads and sends of every size around the packet and slice boundaries") {
  auto [hosts, here, there, target] =
      SimPair("sizes", {.network = "mtu=1024", .jetty = {.berths = 4}}, {.network = "mtu=1024"});
  const size_t sizes[] = {0,    1,    2,     3,     4,     5,      1023,   1024,   1025,   2047,
                          2048, 2049, 65535, 65536, 65537, 131071, 131072, 131073, 200001, 655360};
  unsigned seed = 0;
  for (const size_t size : sizes) {
    INFO("size " << size);
    const auto bytes = bytes_like(size, ++seed);
    std::vector<std::byte> back(size);
    REQUIRE(here.jetty.post({write(bytes, target.segment, 11).to(target.jetty).immediate(size)}) ==
            1);
    auto done = collect(here.jetty, 1);
    REQUIRE(done.size() == 1);
    CHECK(done[0].ok());
    CHECK(done[0].bytes == size);
    done = collect(there.jetty, 1);
    REQUIRE(done.size() == 1);
    CHECK(done[0].immediate == size);
    CHECK(done[0].bytes == size);
    CHECK(same(there.segment.bytes().subspan(11, size), bytes));
    REQUIRE(run_one(here.jetty, read(std::span(back), target.segment, 11)).ok());
    CHECK(back == bytes);
    if (size > max_send_bytes) continue;
    std::vector<std::byte> inbox(max_send_bytes);
    REQUIRE(there.jetty.receive(inbox, 5));
    REQUIRE(run_one(here.jetty, send(bytes, target.jetty).immediate(77)).ok());
    done = collect(there.jetty, 1);
    REQUIRE(done.size() == 1);
    CHECK(done[0].tag == 5);
    CHECK(done[0].bytes == size);
    CHECK(done[0].immediate == 77);
    CHECK(done[0].from_jetty == here.jetty.id());
    CHECK(same(std::span(inbox).first(size), bytes));
  }
}

// Vacant berths show how many works have completed, not which: a buffer may be reused only after
// the completion of its own work.
TEST_CASE("a lost packet delays only its own work, whose buffer is read again") {
  auto [hosts, here, there, target] = SimPair("overtaken", {.jetty = {.berths = 15}});
  std::vector<std::vector<std::byte>> buffers(2, bytes_like(100));
  const auto post = [&, &here = here, &target = target](size_t i) {
    REQUIRE(here.jetty.post(write(buffers[i], target.segment, i * 1000).tag(i)) == 1);
  };
  post(1);
  REQUIRE(only_status(here.jetty, 10ms) == Status::ok);
  const Endpoint from = here.device.endpoint();
  hosts.network().faults.cut(from, there.device.endpoint(), true);
  post(0);
  hosts.run_for(10us);
  const auto newer = bytes_like(100, 2);
  std::ranges::copy(newer, buffers[0].begin());
  hosts.network().faults.cut(from, there.device.endpoint(), false);
  post(1);
  REQUIRE(collect(here.jetty, 1).at(0).tag == 1);
  CHECK(here.jetty.vacant_berths() == 14);
  REQUIRE(collect(here.jetty, 1).at(0).tag == 0);
  CHECK(same(there.segment.bytes().first(100), newer));
}

TEST_CASE("writes whose sources are overwritten after their completions arrive whole") {
  SimHosts hosts("numbered");
  auto here = hosts.start("mtu=1024&loss=2%", {.berths = 15});
  auto there = hosts.start("mtu=1024&loss=2%", {.receives = 64});
  NumberedWrites writes(here.jetty, here.device.import(there.line).value(), 0);
  std::array<Completion, 64> done;
  int arrivals = 0;
  while (arrivals < 2000) {
    writes.post();
    hosts.run_for(1us);
    writes.note(std::span(done).first(here.jetty.poll(done)));
    for (const Completion& arrival : std::span(done).first(there.jetty.poll(done))) {
      REQUIRE(arrival.ok());
      REQUIRE(NumberedWrites::whole(there.segment.bytes(), arrival.immediate));
      ++arrivals;
    }
  }
  // The sources are destroyed before the devices, so wait until no work uses them.
  for (int turn = 0; here.jetty.vacant_berths() < 15; ++turn) {
    REQUIRE(turn < 1'000'000);
    hosts.run_for(1us);
    writes.note(std::span(done).first(here.jetty.poll(done)));
  }
}

// The device reads its frames late, and lost packets are read again. Until then each packet has a
// copy of its own, even if the memory has disappeared meanwhile.
TEST_CASE("guarded memory may disappear before a late device has read it") {
  SimHosts hosts("guarded");
  const auto bytes = bytes_like(300'000);
  for (const Duration gone_after :
       {Duration::max(), Duration(0us), Duration(60us), Duration(110us), Duration(150us)}) {
    auto here = hosts.start("loss=2%&dup=2%&mtu=1024", {.berths = 64});
    auto there = hosts.start("loss=2%&hold=30us&mtu=1024");
    void* const at =
        mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    const std::span memory(static_cast<std::byte*>(at), bytes.size());
    std::ranges::copy(bytes, memory.begin());
    Segment guarded = there.device.register_memory(memory, {.guarded = true}).value();
    const RemoteSegment target = here.device.import(guarded.descriptor()).value().segment;
    std::vector<std::vector<std::byte>> back(64);
    std::vector<Work> works;
    for (size_t i = 0; i < back.size(); ++i) {
      back[i].resize(1 + i * 997 % 70'000);
      works.push_back(read(back[i], target, i * 3000).tag(i));
    }
    REQUIRE(here.jetty.post(works) == works.size());
    const bool goes = gone_after < 1s;
    if (goes) {
      hosts.run_for(gone_after);
      munmap(at, bytes.size());
    }
    size_t refused = 0;
    const auto done = collect(here.jetty, works.size());
    REQUIRE(done.size() == works.size());
    for (const Completion& one : done) {
      const std::span data(back[one.tag]);
      if (one.ok()) CHECK(same(data, std::span(bytes).subspan(one.tag * 3000, data.size())));
      if (!one.ok()) CHECK(one.status == Status::remote_access);
      refused += !one.ok();
    }
    INFO("cut off after " << gone_after.count() << " ns: " << refused << " refused");
    CHECK((refused > 0) == goes);
    REQUIRE(guarded.unregister().ok());
    if (!goes) munmap(at, bytes.size());
  }
}

TEST_CASE("one work writes a gigabyte") {
  SimHosts hosts("gigabyte");
  auto here = hosts.start("mtu=8192", {.berths = 4});
  auto there = hosts.start("mtu=8192");
  const uint64_t bytes = max_write_bytes / (sanitized ? 16 : 1);
  // Pages that are never touched: the source contains zeroes except at its ends.
  Segment large = there.device.allocate(bytes).value();
  Segment source = here.device.allocate(bytes).value();
  source.bytes().front() = std::byte{1};
  source.bytes().back() = std::byte{2};
  const Imported target = here.device.import(large.descriptor()).value();
  REQUIRE(here.jetty.post(write(source.bytes(), target.segment)) == 1);
  const auto done = collect(here.jetty, 1, 60s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].ok());
  CHECK(large.bytes().front() == std::byte{1});
  CHECK(large.bytes().back() == std::byte{2});
}

TEST_CASE("invalid works are accepted and complete with bad_work") {
  auto [hosts, here, there, target] = SimPair("bad-works");
  const auto bytes = bytes_like(max_send_bytes + 1);
  const std::vector<Buffer> many(max_buffers + 1, Buffer{const_cast<std::byte*>(bytes.data()), 1});
  const Work bad[] = {
      send(bytes, target.jetty),                          // too long
      send(std::span(bytes).first(1), RemoteJetty{}),     // without a target
      write(std::span(bytes).first(1), RemoteSegment{}),  // without a target
      write(std::span(bytes).first(1), target.segment)
          .immediate(1),            // an immediate without a target Jetty
      write(many, target.segment),  // too many pieces
  };
  REQUIRE(here.jetty.post(bad) == std::size(bad));
  const auto done = collect(here.jetty, std::size(bad));
  REQUIRE(done.size() == std::size(bad));
  for (const Completion& completion : done) CHECK(completion.status == Status::bad_work);
}

TEST_CASE("refused accesses have no effect: bounds, overflow, token, stale handle, right") {
  auto [hosts, here, there, target] = SimPair("refusals");
  Segment read_only = there.device.allocate(4096, Rights::read).value();
  Segment write_only = there.device.allocate(4096, Rights::write).value();
  Segment gone = there.device.allocate(4096).value();
  const RemoteSegment remote_read_only = here.device.import(read_only.descriptor()).value().segment;
  const RemoteSegment remote_write_only =
      here.device.import(write_only.descriptor()).value().segment;
  const RemoteSegment remote_gone = here.device.import(gone.descriptor()).value().segment;
  const auto before = std::vector(there.segment.bytes().begin(), there.segment.bytes().end());
  const auto gone_bytes = gone.bytes();
  gone.unregister().value();

  const uint64_t end = target.segment.bytes;
  const auto bytes = bytes_like(64);
  std::vector<std::byte> sink(64, std::byte{9});
  // Makes a mistake that the importer can find, and then the same mistake so that only the owner
  // can find it.
  for (const bool forged : {false, true}) {
    RemoteSegment whole = target.segment;
    RemoteSegment from_before = target.segment;
    if (forged) {
      whole.bytes = UINT64_MAX - whole.address;
      from_before.address -= 1;
      from_before.bytes += 1;
    }
    RemoteSegment wrong_token = target.segment;
    wrong_token.token = TokenValue(number(wrong_token.token) ^ 1);
    RemoteSegment wrong_id = target.segment;
    wrong_id.token_id = TokenId((number(wrong_id.token_id) + 1000) % id_limit);
    RemoteSegment more_rights = remote_read_only;
    RemoteSegment other_rights = remote_write_only;
    if (forged) more_rights.rights = other_rights.rights = Rights::read | Rights::write;
    std::vector<Work> works = {
        write(bytes, whole, end - 63),          write(bytes, whole, end),
        read(std::span(sink), whole, end - 63), write(bytes, wrong_token, 0),
        read(std::span(sink), wrong_token, 0),  write(bytes, wrong_id, 0),
        write(bytes, remote_gone, 0),           read(std::span(sink), remote_gone, 0),
        write(bytes, more_rights, 0),           read(std::span(sink), other_rights, 0),
        write(bytes, whole, UINT64_MAX - 10),
    };
    if (forged) works.push_back(write(bytes, from_before, 0));
    REQUIRE(here.jetty.post(works) == works.size());
    const auto done = collect(here.jetty, works.size());
    REQUIRE(done.size() == works.size());
    for (const Completion& completion : done) CHECK(completion.status == Status::remote_access);
  }
  CHECK(same(there.segment.bytes(), before));
  CHECK(std::all_of(sink.begin(), sink.end(), [](std::byte b) { return b == std::byte{9}; }));
  CHECK(std::all_of(gone_bytes.begin(), gone_bytes.end(),
                    [](std::byte b) { return b == std::byte{0}; }));
  // An access of 0 bytes touches nothing and is not checked.
  RemoteSegment nowhere = target.segment;
  nowhere.token = TokenValue(number(nowhere.token) ^ 1);
  CHECK(run_one(here.jetty, write(std::span<const std::byte>{}, nowhere, 0)).ok());
  // An access of the last byte is inside.
  CHECK(run_one(here.jetty, write(std::span(bytes).first(1), target.segment, end - 1)).ok());
}

TEST_CASE("a Jetty's token is checked on every message and immediate, also without data") {
  auto [hosts, here, there, target] = SimPair("jetty-token");
  RemoteJetty forged = target.jetty;
  forged.token = TokenValue(number(forged.token) ^ 0x80000000);
  std::vector<std::byte> inbox(16);
  REQUIRE(there.jetty.receive(inbox));
  const auto bytes = bytes_like(8);
  REQUIRE(here.jetty.post(
              {send(bytes, forged), send(std::span<const std::byte>{}, forged),
               write(std::span<const std::byte>{}, target.segment).to(forged).immediate(1)}) == 3);
  const auto done = collect(here.jetty, 3);
  REQUIRE(done.size() == 3);
  for (const Completion& completion : done) CHECK(completion.status == Status::remote_access);
  CHECK(there.jetty.wait(1ms).empty());
}

TEST_CASE("inline data may be overwritten as soon as post returns, whatever the path loses") {
  auto [hosts, here, there, target] =
      SimPair("inline-data", {.network = "loss=30%", .jetty = {.berths = 64, .inline_bytes = 100}},
              {.jetty = {.berths = 1, .receives = 64}});
  std::vector<std::byte> inbox(64 * 100);
  for (uint64_t tag = 0; tag < 32; ++tag) {
    REQUIRE(there.jetty.receive(std::span(inbox).subspan(tag * 100, 100), tag));
  }
  for (unsigned i = 0; i < 32; ++i) {
    auto bytes = bytes_like(3 * i, i);
    const Buffer parts[] = {{bytes.data(), i}, {nullptr, 0}, {bytes.data() + i, bytes.size() - i}};
    REQUIRE(here.jetty.post({write(bytes, target.segment, 1000 * i).inline_data(),
                             send(parts, target.jetty).inline_data()}) == 2);
    std::ranges::fill(bytes, std::byte{0xee});
  }
  for (const Completion& completion : collect(here.jetty, 64)) CHECK(completion.ok());
  CHECK(here.device.stats().value().retransmitted > 0);
  const auto arrived = collect(there.jetty, 32);
  REQUIRE(arrived.size() == 32);
  std::map<uint32_t, unsigned> sizes;
  for (const Completion& completion : arrived) {
    const unsigned i = completion.bytes / 3;
    ++sizes[completion.bytes];
    CHECK(same(std::span(inbox).subspan(completion.tag * 100, completion.bytes),
               bytes_like(3 * i, i)));
    CHECK(same(there.segment.bytes().subspan(1000 * i, 3 * i), bytes_like(3 * i, i)));
  }
  CHECK(sizes.size() == 32);
}

TEST_CASE("inline data that does not fit, or in a read, is a bad work") {
  auto [hosts, here, there, target] =
      SimPair("inline-limits", {.jetty = {.berths = 8, .inline_bytes = 64}});
  auto bytes = bytes_like(65);
  const auto post = [&](Work work) {
    REQUIRE(here.jetty.post(work.inline_data()) == 1);
    return collect(here.jetty, 1).at(0).status;
  };
  CHECK(post(write(std::span(bytes).first(64), target.segment)) == Status::ok);
  CHECK(post(write(bytes, target.segment)) == Status::bad_work);
  CHECK(post(read(std::span(bytes).first(8), target.segment)) == Status::bad_work);
  const std::vector<Buffer> many(max_buffers + 1, Buffer{bytes.data(), 1});
  CHECK(post(write(many, target.segment)) == Status::bad_work);
  CHECK(here.device.jetty({.inline_bytes = max_inline_bytes}).ok());
  CHECK(here.device.jetty({.inline_bytes = max_inline_bytes + 1}).status() ==
        Status::invalid_argument);
  auto none = here.device.jetty({.berths = 1, .inline_bytes = 0}).value();
  CHECK(run_one(none, write(std::span(bytes).first(0), target.segment).inline_data()).ok());
}

TEST_CASE("a message longer than its buffer completes with an error on both sides") {
  auto [hosts, here, there, target] = SimPair("too-long");
  std::vector<std::byte> inbox(100);
  REQUIRE(there.jetty.receive(inbox, 3));
  const auto bytes = bytes_like(20'000);
  CHECK(run_one(here.jetty, send(bytes, target.jetty)).status == Status::remote_unsupported);
  const auto told = collect(there.jetty, 1);
  REQUIRE(told.size() == 1);
  CHECK(told[0].status == Status::receive_too_small);
  CHECK(told[0].bytes == bytes.size());
  CHECK(told[0].tag == 3);
}

TEST_CASE("a receiver that is not ready is asked until it is, and other works do not wait for it") {
  auto [hosts, here, there, target] = SimPair("not-ready");
  const auto bytes = bytes_like(3000);
  REQUIRE(here.jetty.post(
              {send(bytes, target.jetty).tag(1), write(bytes, target.segment).tag(2)}) == 2);
  auto done = collect(here.jetty, 1);
  REQUIRE(done.size() == 1);
  CHECK(done[0].tag == 2);
  hosts.run_for(3s);  // longer than the operation time-out: the receiver answers, so it is alive
  std::vector<std::byte> inbox(4096);
  REQUIRE(there.jetty.receive(inbox, 9));
  const Time ready = hosts.now();
  done = collect(here.jetty, 1);
  REQUIRE(done.size() == 1);
  CHECK(done[0].ok());
  CHECK(hosts.now() - ready < 2ms);
  CHECK(same(std::span(inbox).first(3000), bytes));
  // Asking costs little: once each millisecond.
  const Statistics statistics = here.device.stats().value();
  CHECK(statistics.receiver_not_ready > 100);
  CHECK(statistics.receiver_not_ready < 6000);
}

TEST_CASE("a work to a receiver that is never ready ends after the receiver's time-out") {
  auto [hosts, here, there, target] =
      SimPair("never-ready", {.jetty = {.berths = 8, .receiver_timeout = 100ms}});
  const auto bytes = bytes_like(10);
  const Time posted = hosts.now();
  CHECK(run_one(here.jetty, send(bytes, target.jetty)).status == Status::receiver_not_ready);
  CHECK(hosts.now() - posted < 103ms);
  // The message was withdrawn, so it does not arrive later.
  std::vector<std::byte> inbox(100);
  REQUIRE(there.jetty.receive(inbox));
  hosts.run_for(100ms);
  CHECK(there.jetty.wait(1ms).empty());
  CHECK(run_one(here.jetty, send(bytes, target.jetty)).ok());
}

TEST_CASE("a Jetty without receive slots refuses messages, and the status says why") {
  auto [hosts, here, there, target] =
      SimPair("no receives", {.jetty = {.berths = 64}}, {.jetty = {.berths = 1, .receives = 0}});
  const auto bytes = bytes_like(8);
  REQUIRE(here.jetty.post({send(bytes, target.jetty),
                           write(bytes, target.segment).to(target.jetty).immediate(1),
                           write(bytes, target.segment)}) == 3);
  const auto done = collect(here.jetty, 3);
  REQUIRE(done.size() == 3);
  for (const Completion& completion : done) {
    const bool plain = completion.operation == Operation::write && !completion.with_immediate;
    INFO(name(completion.status));
    CHECK(completion.status == (plain ? Status::ok : Status::remote_unsupported));
  }
}

TEST_CASE("immediates wait for permits as messages wait for buffers") {
  auto [hosts, here, there, target] =
      SimPair("permits", {.jetty = {.berths = 64}}, {.jetty = {.berths = 1, .receives = 4}});
  const auto bytes = bytes_like(8);
  std::vector<Work> works;
  for (uint64_t i = 1; i <= 20; ++i) {
    works.push_back(write(bytes, target.segment, 8 * i).to(target.jetty).immediate(i).tag(i));
  }
  REQUIRE(here.jetty.post(works) == works.size());
  hosts.run_for(20ms);
  std::vector<Completion> out(64);
  CHECK(here.jetty.poll(out) == 4);
  std::map<uint64_t, int> arrived;
  while (arrived.size() < 20) {
    const auto completions = there.jetty.wait(1s);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& completion : completions) ++arrived[completion.immediate];
  }
  for (const auto& [immediate, times] : arrived) CHECK(times == 1);
  CHECK(collect(here.jetty, 16).size() == 16);
}

TEST_CASE("posting without a vacant berth takes nothing, and nothing is lost") {
  auto [hosts, here, there, target] = SimPair("berths", {.jetty = {.berths = 4}});
  const auto bytes = bytes_like(8);
  uint64_t next = 1;
  std::map<uint64_t, int> completed;
  while (next <= 1000) {
    while (here.jetty.post(write(bytes, target.segment).tag(next)) == 1) ++next;
    CHECK(here.jetty.vacant_berths() == 0);
    for (const Completion& completion : here.jetty.wait(1s)) ++completed[completion.tag];
  }
  while (completed.size() < next - 1) {
    for (const Completion& completion : here.jetty.wait(1s)) ++completed[completion.tag];
  }
  for (const auto& [tag, times] : completed) REQUIRE(times == 1);
}

TEST_CASE("an unsignalled work completes only if it fails, and its berth returns with the next") {
  auto [hosts, here, there, target] = SimPair("unsignalled", {.jetty = {.berths = 8}});
  const auto bytes = bytes_like(8);
  RemoteSegment forged = target.segment;
  forged.token = TokenValue(number(forged.token) + 1);
  Work quiet = write(bytes, target.segment);
  quiet.unsignalled();
  Work failing = write(bytes, forged).tag(5);
  failing.unsignalled();
  REQUIRE(here.jetty.post({quiet, quiet, failing, quiet, write(bytes, target.segment).tag(6)}) ==
          5);
  const auto done = collect(here.jetty, 2);
  REQUIRE(done.size() == 2);
  CHECK(done[0].tag == 5);
  CHECK(done[0].status == Status::remote_access);
  CHECK(done[1].tag == 6);
  CHECK(here.jetty.vacant_berths() == 8);
}

TEST_CASE("flushing one of eight Jetties, with 1000 works, delays the others by one round trip") {
  SimHosts hosts("flush");
  const std::string delay = "delay=100us";
  auto here = hosts.start(delay, {.berths = 1000});
  auto there = hosts.start(delay);
  const Imported target = here.device.import(there.line).value();
  std::vector<Jetty> others;
  for (int i = 0; i < 7; ++i) others.push_back(here.device.jetty({.berths = 16}).value());
  const auto bytes = bytes_like(4096);
  const auto small = bytes_like(64);
  // Returns the longest time that a small write of one of the other Jetties takes.
  const auto slowest = [&] {
    Duration worst{};
    for (Jetty& other : others) {
      const Time posted = hosts.now();
      REQUIRE(other.post(write(small, target.segment)) == 1);
      const auto done = collect(other, 1);
      REQUIRE(done.size() == 1);
      REQUIRE(done[0].ok());
      worst = std::max(worst, hosts.now() - posted);
    }
    return worst;
  };
  slowest();
  const Duration calm = slowest();
  const std::vector<Work> works(1000, write(bytes, target.segment, 4096));
  REQUIRE(here.jetty.post(works) == 1000);
  hosts.run_for(30us);
  const Time begun = hosts.now();
  here.jetty.flush().value();
  const Duration flushed = hosts.now() - begun;
  CHECK(slowest() <= calm + 200us);
  CHECK(flushed <= 10ms);
  const auto done = collect(here.jetty, 1000, 1ms);
  CHECK(done.size() == 1000);
  here.jetty.reset().value();
  CHECK(run_one(here.jetty, write(small, target.segment)).ok());
}

TEST_CASE("many Jetties towards one peer share one channel") {
  auto [hosts, here, there, target] = SimPair("share");
  const auto bytes = bytes_like(100);
  std::vector<Jetty> jetties;
  for (int i = 0; i < 128; ++i) jetties.push_back(here.device.jetty({.berths = 4}).value());
  for (Jetty& jetty : jetties) REQUIRE(jetty.post(write(bytes, target.segment)) == 1);
  for (Jetty& jetty : jetties) CHECK(collect(jetty, 1).at(0).ok());
  CHECK(here.device.stats().value().channels == 1);
  CHECK(there.device.stats().value().channels == 1);
}

TEST_CASE(
    "a shared JFC has the completions of all its Jetties, and refuses Jetties that do not fit") {
  auto [hosts, here, there, target] = SimPair("shared-jfc");
  Jfc jfc = here.device.jfc(64).value();
  std::vector<Jetty> jetties;
  for (int i = 0; i < 4; ++i) {
    jetties.push_back(here.device.jetty({.berths = 16, .completions = &jfc}).value());
  }
  const auto refused = here.device.jetty({.berths = 1, .completions = &jfc});
  CHECK(refused.status() == Status::no_resources);
  CHECK(refused.error().message.find("depth of 65") != std::string::npos);
  const auto bytes = bytes_like(100);
  for (Jetty& jetty : jetties)
    REQUIRE(jetty.post(write(bytes, target.segment).tag(number(jetty.id()))) == 1);
  std::map<uint64_t, int> seen;
  while (seen.size() < 4) {
    const auto completions = jfc.wait(1s);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& completion : completions) {
      CHECK(completion.tag == number(completion.jetty));
      ++seen[completion.tag];
    }
  }
  // The entries of a destroyed Jetty are free for another one once its completions are polled.
  REQUIRE(jetties[0].post(write(bytes, target.segment)) == 1);
  hosts.run_for(10ms);
  jetties.erase(jetties.begin());
  CHECK_FALSE(here.device.jetty({.berths = 16, .completions = &jfc}).ok());
  REQUIRE_FALSE(jfc.wait(1ms).empty());
  CHECK(here.device.jetty({.berths = 16, .completions = &jfc}).ok());
}

}  // namespace
}  // namespace urma::test
