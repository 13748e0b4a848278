// SPDX-License-Identifier: Apache-2.0
// Writes with a notification: the value is stored after the data, once, or not at all.

#include <atomic>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t word_at = 900'000;  // behind all data; a multiple of 8

std::atomic_ref<uint64_t> word(const Segment& segment, uint64_t at = word_at) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(segment.bytes().data() + at));
}

// Two hosts, and the segment of one of them as the other imports it.
struct Pair : SimPair {
  explicit Pair(const std::string& name, const std::string& path = "",
                const DeviceOptions& device = {})
      : SimPair(name,
                {.network = path,
                 .jetty = {.berths = 16, .receives = 16, .inline_bytes = 64},
                 .device = device},
                {.network = path, .jetty = {.berths = 16, .receives = 16}, .device = device}) {}

  Status status_of(const Work& work) { return run_one(here.jetty, work).status; }
  // Polls both hosts, because inlined engines need it, until `done` or for 10 s.
  template <class Done>
  void run_until(Done&& done) {
    const Time limit = hosts.now() + 10s;
    while (!done() && hosts.now() < limit) {
      std::array<Completion, 4> none;
      (void)there.jetty.poll(none);
      hosts.run_for(1us);
    }
  }
};

TEST_CASE("a thread that sees the notified value sees data of every size, whatever is lost") {
  const bool inlined = GENERATE(false, true);
  Pair pair(inlined ? "notify-inlined" : "notify", "mtu=1024&loss=5%&reorder=10%&dup=5%",
            {.threads = inlined ? Threads::inlined : Threads::served});
  std::vector<Completion> out(4);
  uint64_t value = 0;
  for (const size_t size : {0, 1, 1023, 1024, 1025, 65535, 65536, 65537, 131072, 200'001}) {
    INFO("size " << size);
    const auto bytes = bytes_like(size, static_cast<unsigned>(++value));
    REQUIRE(pair.here.jetty.post(write(bytes, pair.target.segment, 11)
                                     .notify(pair.target.segment, word_at, ~value)
                                     .tag(value)) == 1);
    size_t done = 0;
    bool seen = false;
    pair.run_until([&] {
      done += pair.here.jetty.poll(std::span(out).subspan(done));
      if (!seen && word(pair.there.segment).load(std::memory_order_acquire) == ~value) {
        seen = true;
        CHECK(same(pair.there.segment.bytes().subspan(11, size), bytes));
      }
      return done > 0;
    });
    REQUIRE(done == 1);
    CHECK(seen);
    CHECK(out[0].ok());
    CHECK(out[0].tag == value);
    CHECK(out[0].bytes == size);
    CHECK_FALSE(out[0].with_immediate);
  }
  // The target's Jetty gets no completion: only the word reports the write.
  CHECK(pair.there.jetty.poll(out) == 0);
  CHECK(pair.here.device.stats().value().retransmitted > 0);
}

TEST_CASE(
    "a notification may go to another segment, and follow inline data, pieces or other works") {
  Pair pair("notify-forms");
  Segment words = pair.there.device.allocate(4096, Rights::write).value();
  const RemoteSegment to = pair.here.device.import(words.descriptor()).value().segment;
  const auto bytes = bytes_like(60);
  auto gone = bytes;
  const Buffer parts[] = {{gone.data(), 20}, {gone.data() + 20, 40}};
  REQUIRE(pair.here.jetty.post(
              {write(gone, pair.target.segment).notify(to, 0, 1).inline_data(),
               write(parts, pair.target.segment, 100).notify(to, 8, 2).inline_data(),
               write(bytes, pair.target.segment, 200).notify(to, 4088, 3).unsignalled(),
               write(bytes, pair.target.segment, 300).to(pair.target.jetty).immediate(4)}) == 4);
  std::ranges::fill(gone, std::byte{0xee});
  for (const Completion& completion : collect(pair.here.jetty, 3)) CHECK(completion.ok());
  for (const uint64_t offset : {0, 100, 200, 300}) {
    CHECK(same(pair.there.segment.bytes().subspan(offset, bytes.size()), bytes));
  }
  CHECK(word(words, 0) == 1);
  CHECK(word(words, 8) == 2);
  CHECK(word(words, 4088) == 3);
}

TEST_CASE("invalid notifications are bad works") {
  Pair pair("notify-bad");
  auto third = pair.hosts.start();
  const RemoteSegment elsewhere = pair.here.device.import(third.line).value().segment;
  const RemoteSegment& segment = pair.target.segment;
  auto bytes = bytes_like(16);
  const Work good = write(bytes, segment);
  for (const Work& bad : {
           Work(good).notify(elsewhere, 0, 1),
           Work(good).notify({}, 0, 1),
           Work(good).notify(segment, word_at + 4, 1),  // offset is not aligned
           Work(good).to(pair.target.jetty).immediate(1).notify(segment, word_at, 1),
           Work(good).notify(segment, word_at, 1).to(pair.target.jetty).immediate(1),
           read(std::span(bytes), segment).notify(segment, word_at, 1),
           send(bytes, pair.target.jetty).notify(segment, word_at, 1),
       }) {
    CHECK(pair.status_of(bad) == Status::bad_work);
  }
  CHECK(same(pair.there.segment.bytes().first(16), std::vector<std::byte>(16)));
  // A valid word between the refused ones is accepted.
  CHECK(pair.status_of(Work(good).to(pair.target.jetty).notify(segment, word_at, 1)) == Status::ok);
}

TEST_CASE("a refused notification makes its slice fail and leaves the word as it was") {
  Pair pair("notify-refused");
  Segment read_only = pair.there.device.allocate(4096, Rights::read).value();
  const RemoteSegment no_right = pair.here.device.import(read_only.descriptor()).value().segment;
  const RemoteSegment& segment = pair.target.segment;
  const uint64_t end = segment.bytes;
  const auto bytes = bytes_like(5000);
  const std::vector<std::byte> nothing(bytes.size());
  // Makes a mistake that the importer can find, and then the same mistake so that only the owner
  // can find it.
  for (const bool forged : {false, true}) {
    RemoteSegment larger = segment;
    RemoteSegment more_rights = no_right;
    if (forged) larger.bytes += 4096;
    if (forged) more_rights.rights = Rights::write;
    RemoteSegment wrong_token = segment;
    wrong_token.token = TokenValue(number(segment.token) ^ 1);
    const Work refused[] = {
        write(bytes, segment).notify(larger, end, 5),
        write(bytes, segment).notify(larger, UINT64_MAX - 7, 5),
        write(bytes, segment).notify(more_rights, 0, 5),
        write(bytes, segment).notify(wrong_token, word_at, 5),
        write(std::span<const std::byte>{}, segment).notify(wrong_token, word_at, 5),
    };
    for (const Work& work : refused) CHECK(pair.status_of(work) == Status::remote_access);
  }
  CHECK(same(pair.there.segment.bytes().first(bytes.size()), nothing));
  CHECK(word(pair.there.segment) == 0);
  // The data is refused, in the last slice or in an earlier one; the notification alone would be
  // allowed.
  const auto large = bytes_like(200'000);
  RemoteSegment longer = segment;
  longer.bytes += 1 << 20;
  for (const uint64_t offset : {end - 199'999, end - 100'000}) {
    CHECK(pair.status_of(write(large, longer, offset).notify(segment, 0, 5)) ==
          Status::remote_access);
  }
  CHECK(word(read_only, 0) == 0);
  CHECK(word(pair.there.segment, 0) == 0);
  // The queue accepts further works.
  CHECK(pair.status_of(write(bytes, segment).notify(segment, end - 8, 6)) == Status::ok);
  CHECK(word(pair.there.segment, end - 8) == 6);
}

TEST_CASE("a segment that is unregistered while the data arrives is not notified") {
  Pair pair("notify-unregister", "delay=100us&mtu=1024");
  std::vector<uint64_t> words(16);
  Segment gone =
      pair.there.device.register_memory(std::as_writable_bytes(std::span(words))).value();
  const RemoteSegment to = pair.here.device.import(gone.descriptor()).value().segment;
  const auto bytes = bytes_like(64 * 1024);
  REQUIRE(pair.status_of(write(bytes, pair.target.segment, 100'000)) == Status::ok);
  REQUIRE(pair.here.jetty.post(write(bytes, pair.target.segment).notify(to, 64, 1)) == 1);
  while (pair.there.segment.bytes()[0] != bytes[0]) pair.hosts.run_for(1us);
  gone.unregister().value();
  CHECK(collect(pair.here.jetty, 1).at(0).status == Status::remote_access);
  CHECK(words == std::vector<uint64_t>(16));
  CHECK(pair.status_of(write(bytes, pair.target.segment).notify(pair.target.segment, word_at, 2)) ==
        Status::ok);
  CHECK(word(pair.there.segment) == 2);
}

TEST_CASE("a work that is flushed in flight does not notify") {
  Pair pair("notify-flush", "delay=100us&mtu=1024");
  const auto bytes = bytes_like(200'000);
  REQUIRE(pair.status_of(write(bytes, pair.target.segment)) == Status::ok);
  REQUIRE(pair.here.jetty.post(
              write(bytes, pair.target.segment).notify(pair.target.segment, word_at, 1)) == 1);
  pair.hosts.run_for(150us);
  pair.here.jetty.flush().value();
  CHECK(collect(pair.here.jetty, 1).at(0).status == Status::unknown);
  pair.here.jetty.reset().value();
  pair.hosts.run_for(100ms);
  CHECK(word(pair.there.segment) == 0);
}

// As in life_test.cc for a send, the write is executed, and the path fails before the answer.
TEST_CASE("a notification whose answer is lost with its channel comes once and completes as ok") {
  Pair pair("notify-once", "", {.operation_timeout = 20s});
  const auto bytes = bytes_like(3000);
  REQUIRE(pair.status_of(write(bytes, pair.target.segment)) == Status::ok);
  const Endpoint here = pair.here.device.endpoint();
  const Endpoint there = pair.there.device.endpoint();
  pair.hosts.network().faults.cut(there, here, true);
  REQUIRE(pair.here.jetty.post(
              write(bytes, pair.target.segment).notify(pair.target.segment, word_at, 7)) == 1);
  pair.run_until([&] { return word(pair.there.segment) == 7; });
  REQUIRE(word(pair.there.segment) == 7);
  // The application has seen the value and begins its next round.
  word(pair.there.segment) = 0;
  const std::vector<std::byte> later(bytes.size(), std::byte{3});
  std::ranges::copy(later, pair.there.segment.bytes().begin());
  pair.hosts.run_for(1200ms);  // by then the channel has been declared dead
  pair.hosts.network().faults.cut(there, here, false);
  CHECK(collect(pair.here.jetty, 1, 15s).at(0).ok());
  pair.hosts.run_for(100ms);
  CHECK(word(pair.there.segment) == 0);
  CHECK(same(pair.there.segment.bytes().first(later.size()), later));
  CHECK(pair.there.device.stats().value().repeated == 1);
}

// A write with notification in two packets, sent by a stranger.
struct StrangersWrite {
  SimHosts hosts;
  SimHosts::Host there;
  Stranger stranger;
  std::vector<std::byte> bytes = bytes_like(2 * Stranger::mtu);
  TaRequest request;
  uint32_t slices = 0;

  explicit StrangersWrite(const std::string& name)
      : hosts(name), there(hosts.start()), stranger(hosts, "2001:db8::66") {
    REQUIRE(stranger.connect(there.device.endpoint()));
    const Descriptor::Segment to =
        parse_descriptor(there.segment.descriptor()).value().segment.value();
    request.base = {.opcode = static_cast<uint8_t>(TaOpcode::write_notify),
                    .token_present = true,
                    .rc_id = 2000};
    request.memory = {
        .address = to.address, .token_id = number(to.id), .length = 2 * Stranger::mtu};
    request.notify = {.address = to.address + word_at,
                      .token_id = number(to.id),
                      .token = number(to.token),
                      .value = 9};
    request.token.token = number(to.token);
  }
  void send(uint32_t index, TaRequest packet) {
    packet.memory.address += index * Stranger::mtu;
    stranger.send({.slice = slices, .last = index == 1}, packet,
                  std::span(bytes).subspan(size_t{index} * Stranger::mtu, Stranger::mtu));
  }
  // Sends the whole slice and returns the answer.
  Atah answer(const TaRequest& first, const TaRequest& second) {
    ++slices;
    send(0, first);
    send(1, second);
    return stranger.answers().at(0);
  }
  bool placed() const { return same(there.segment.bytes().first(bytes.size()), bytes); }
};

TEST_CASE(
    "the target checks the notification of each packet, and keeps no state of a refused one") {
  StrangersWrite write("notify-checked");
  const TaRequest good = write.request;
  TaRequest misaligned = good;
  misaligned.notify.address += 4;
  TaRequest wrong_token = good;
  wrong_token.notify.token ^= 1;
  const auto refused = [&](const TaRequest& first, const TaRequest& second) {
    const Atah answer = write.answer(first, second);
    return answer.status == Response::completer_error &&
           answer.info == static_cast<uint8_t>(CompleterError::remote_abort);
  };
  CHECK(refused(misaligned, misaligned));
  CHECK(refused(wrong_token, wrong_token));
  CHECK_FALSE(write.placed());
  // The word that the last packet names is the one that is stored.
  CHECK(refused(good, wrong_token));
  CHECK(refused(good, misaligned));
  CHECK(write.placed());
  CHECK(word(write.there.segment) == 0);
  // All attempts had the same TASSN, and none of them counts as executed or in progress.
  CHECK(write.answer(good, good).status == Response::success);
  CHECK(word(write.there.segment) == 9);
  word(write.there.segment) = 0;
  CHECK(write.answer(good, good).status == Response::success);
  CHECK(word(write.there.segment) == 0);
  CHECK(write.there.device.stats().value().repeated == 1);
}

TEST_CASE("a notification that is withdrawn in flight never comes") {
  StrangersWrite write("notify-withdrawn");
  const TaRequest good = write.request;
  ++write.slices;
  write.send(0, good);
  TaRequest filler;
  filler.base = {.rc_id = good.base.rc_id};
  write.stranger.send({.slice = write.slices, .fake = true}, filler, {});
  const Atah answer = write.stranger.answers().at(0);
  CHECK(answer.status == Response::completer_error);
  CHECK(answer.info == static_cast<uint8_t>(CompleterError::withdrawn));
  ++write.slices;
  write.send(0, good);
  write.send(1, good);
  CHECK(write.stranger.answers().empty());
  CHECK(word(write.there.segment) == 0);
  // The next write notifies another value.
  TaRequest next = good;
  next.base.tassn = 1;
  CHECK(write.answer(next, next).status == Response::success);
  CHECK(word(write.there.segment) == 9);
}

}  // namespace
}  // namespace urma::test
