// SPDX-License-Identifier: Apache-2.0
// Segments that lie in a window: processors copy them without packets, with the same checks and the
// same completions as with packets.

#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

constexpr size_t segment_bytes = 1 << 20;

// Two devices on a window, and a segment of the owner. The segment lies in the window's memory or
// in the application's.
struct Pair : UserAndOwner {
  explicit Pair(bool mapped)
      : UserAndOwner("cxl:", "?size=64M"),
        segment(mapped ? owner.device.allocate(segment_bytes).value()
                       : owner.device.register_memory(memory).value()),
        there(import(segment)),
        told(user.device.import(owner.line()).value().jetty) {}

  std::vector<std::byte> memory = std::vector<std::byte>(segment_bytes);
  Segment segment;
  RemoteSegment there;
  RemoteJetty told;

  uint64_t copied() { return user.device.stats().value().copied; }
};

// Returns the number of the segment's record in the window.
uint32_t number_of(const RemoteSegment& segment) {
  return static_cast<uint32_t>((segment.address & ~drivers::cxl::in_the_window) >>
                               drivers::cxl::offset_bits);
}

TEST_CASE(
    "a write to and a read of memory in the window are copies, without a packet to the owner") {
  Pair pair(true);
  REQUIRE(run_one(pair.user.jetty, write(bytes_like(8, 1), pair.there)).ok());  // makes the channel
  const uint64_t before = pair.owner.device.stats().value().executed;
  for (const size_t bytes : {1, 8, 63, 4095, 4096, 4097, 65'535, 65'536, 65'537, 1'000'003}) {
    INFO("bytes " << bytes);
    const auto data = bytes_like(bytes, static_cast<unsigned>(bytes));
    const uint64_t copied = pair.copied();
    const Completion written = run_one(pair.user.jetty, write(data, pair.there, 40).tag(7));
    CHECK(written.ok());
    CHECK(written.tag == 7);
    CHECK(written.bytes == bytes);
    CHECK(same(pair.segment.bytes().subspan(40, bytes), data));
    std::vector<std::byte> back(bytes);
    CHECK(run_one(pair.user.jetty, read(back, pair.there, 40)).ok());
    CHECK(back == data);
    CHECK(pair.copied() - copied == 2 * ((bytes + 65'535) / 65'536));
  }
  CHECK(pair.owner.device.stats().value().executed == before);
}

TEST_CASE("a copy larger than the caches bypasses them where that was measured to be faster") {
  constexpr size_t bytes = 17'000'001;
  const WindowFile window("large");
  Side left = Side::open(window.device("?size=64M"), {.threads = Threads::inlined});
  Side right = Side::open(window.device(""), {.threads = Threads::served});
  Segment segment = right.device.allocate(bytes + 100).value();
  CHECK(left.device.stats().value().past_caches_from == UINT64_MAX);
  const RemoteSegment there = left.device.import(segment.descriptor()).value().segment;
  const uint64_t from = left.device.stats().value().past_caches_from;
  CHECK(from >= 4 << 20);
  const auto data = bytes_like(bytes, 5);
  std::vector<std::byte> back(bytes);
  const Buffer pieces[] = {{back.data(), 7'000'003}, {back.data() + 7'000'003, bytes - 7'000'003}};
  CHECK(run_one(left.jetty, write(data, there, 33)).ok());
  CHECK(run_one(left.jetty, read(pieces, there, 33)).ok());
  CHECK(same(segment.bytes().subspan(33, bytes), data));
  CHECK(back == data);
  const Statistics statistics = left.device.stats().value();
  CHECK(statistics.copied >= 2 * (bytes / 65'536));
  CHECK(statistics.copied_past_caches == (bytes >= from ? statistics.copied : 0));
}

TEST_CASE("writes gather buffers into the window, and reads scatter from it") {
  Pair pair(true);
  const auto data = bytes_like(150'000, 3);
  std::vector<std::byte> from = data;
  std::vector<std::byte> to(data.size());
  const auto pieces_of = [](std::vector<std::byte>& bytes) {
    std::vector<Buffer> pieces;
    for (size_t at = 0; at < bytes.size(); at += 10'007) {
      pieces.push_back({bytes.data() + at, std::min<size_t>(10'007, bytes.size() - at)});
    }
    return pieces;
  };
  const auto out = pieces_of(from);
  const auto in = pieces_of(to);
  REQUIRE(out.size() == 15);
  CHECK(run_one(pair.user.jetty, write(std::span(out), pair.there, 1)).ok());
  CHECK(run_one(pair.user.jetty, read(std::span(in), pair.there, 1)).ok());
  CHECK(to == data);
  CHECK(pair.copied() == 6);
}

TEST_CASE(
    "an immediate and a notification come after all the data, and the immediate reports its size") {
  Pair pair(true);
  for (const size_t bytes : {0, 8, 4096, 70'000, 1'000'000}) {
    INFO("bytes " << bytes);
    const auto data = bytes_like(bytes, 9);
    REQUIRE(pair.user.jetty.post(write(data, pair.there).to(pair.told).immediate(77)) == 1);
    bool ended = false;
    for (int waits = 0; waits < 1000 && !ended; ++waits) {
      for (const Completion& completion : pair.user.jetty.wait(1ms)) ended = completion.ok();
    }
    REQUIRE(ended);
    const auto arrived = collect(pair.owner.jetty, 1);
    REQUIRE(arrived.size() == 1);
    CHECK(arrived[0].immediate == 77);
    CHECK(arrived[0].bytes == bytes);
    CHECK(same(pair.segment.bytes().first(bytes), data));
    // Orders these reads before the next stores of the service thread. The thread sanitizer sees no
    // order between accesses through a window, which is mapped twice here.
    REQUIRE(pair.owner.device.stats().ok());

    const uint64_t value = 1000 + bytes;
    CHECK(run_one(pair.user.jetty,
                  write(data, pair.there).notify(pair.there, segment_bytes - 8, value))
              .ok());
    auto& word = *reinterpret_cast<uint64_t*>(pair.segment.bytes().last(8).data());
    CHECK(std::atomic_ref(word).load(std::memory_order_acquire) == value);
  }
}

// An access that is refused for one kind of memory is refused for the other with the same status.
TEST_CASE("token, bounds and rights are checked in the window as a peer would check them") {
  Pair mapped(true);
  Pair own(false);
  const auto ends = [](Pair& pair) {
    std::vector<Status> out;
    std::vector<std::byte> bytes(100'000);
    const auto both = [&](const RemoteSegment& segment, uint64_t offset) {
      out.push_back(run_one(pair.user.jetty, write(bytes, segment, offset)).status);
      out.push_back(run_one(pair.user.jetty, read(bytes, segment, offset)).status);
      out.push_back(
          run_one(pair.user.jetty, write(bytes, segment, offset).to(pair.told).immediate(1))
              .status);
      out.push_back(
          run_one(pair.user.jetty, write(bytes, segment, offset).notify(pair.there, 8, 1)).status);
    };
    both(pair.there, 0);
    both(pair.there, segment_bytes - 100'000);
    // Hides from the initiator a mistake that it could find by itself.
    RemoteSegment forged = pair.there;
    forged.bytes += 100'000;
    both(forged, segment_bytes - 99'999);
    both(forged, segment_bytes);
    forged = pair.there;
    forged.token = TokenValue(number(forged.token) ^ 1);
    both(forged, 0);
    forged = pair.there;
    forged.token_id = TokenId(number(forged.token_id) ^ 1);
    both(forged, 0);
    forged = pair.there;
    forged.address += uint64_t{1} << 50;
    both(forged, 0);
    return out;
  };
  const auto statuses = ends(mapped);
  const auto others = ends(own);
  for (size_t i = 0; i < others.size(); ++i) {
    INFO("work " << i);
    CHECK(statuses[i] == others[i]);
  }
  CHECK(own.copied() == 0);
}

TEST_CASE("rights of a segment in the window hold for each process that maps it") {
  Pair pair(true);
  const auto bytes = bytes_like(100, 1);
  for (const Rights rights : {Rights::read, Rights::write, Rights::local_only}) {
    const Segment less = pair.owner.device.allocate(4096, rights).value();
    RemoteSegment all = pair.user.device.import(less.descriptor()).value().segment;
    all.rights = Rights::read | Rights::write;
    std::vector<std::byte> back(100);
    CHECK(run_one(pair.user.jetty, write(bytes, all)).ok() == has(rights, Rights::write));
    CHECK(run_one(pair.user.jetty, read(back, all)).ok() == has(rights, Rights::read));
    CHECK((less.bytes()[0] != std::byte{}) == has(rights, Rights::write));
  }
}

TEST_CASE(
    "after unregister a process that maps the memory reaches neither it nor its next owner's") {
  Pair pair(true);
  const auto bytes = bytes_like(5000, 1);
  REQUIRE(run_one(pair.user.jetty, write(bytes, pair.there)).ok());
  REQUIRE(pair.segment.unregister().ok());
  const uint64_t copied = pair.copied();
  CHECK(run_one(pair.user.jetty, write(bytes_like(5000, 2), pair.there)).status ==
        Status::remote_access);
  CHECK(same(pair.segment.bytes().first(5000), bytes));
  { const Segment gone = std::move(pair.segment); }
  pair.segment = pair.owner.device.allocate(segment_bytes).value();
  // The new segment lies where the old one lay: its memory is zeros, and the old token is refused.
  const RemoteSegment next = pair.user.device.import(pair.segment.descriptor()).value().segment;
  REQUIRE(next.address == pair.there.address);
  CHECK(pair.segment.bytes()[0] == std::byte{});
  CHECK(run_one(pair.user.jetty, write(bytes, pair.there)).status == Status::remote_access);
  CHECK(pair.segment.bytes()[0] == std::byte{});
  CHECK(pair.copied() == copied);
  CHECK(run_one(pair.user.jetty, write(bytes, next)).ok());
}

TEST_CASE("a device whose window was removed gets no memory in its replacement") {
  Pair pair(true);
  REQUIRE(run_one(pair.user.jetty, write(bytes_like(8, 1), pair.there)).ok());
  pair.medium.window().cut(0);
  CHECK(pair.user.segment.bytes()[0] ==
        std::byte{});  // the fault tells the device that its window is lost
  const Side other = Side::open(pair.medium.text(), {.threads = Threads::inlined});
  REQUIRE(other.segment.mapped());
  std::ranges::fill(other.segment.bytes(), std::byte{0xab});
  const Segment own = pair.user.device.allocate(segment_bytes).value();
  CHECK_FALSE(own.mapped());
  { const Segment gone = std::move(pair.user.segment); }
  const auto same = [](std::byte byte) { return byte == std::byte{0xab}; };
  CHECK(std::ranges::all_of(other.segment.bytes(), same));
}

TEST_CASE("a false size in a segment's record does not harm other segments") {
  Pair pair(true);
  std::vector<Segment> all;
  for (int i = 0; i < 3; ++i) all.push_back(pair.owner.device.allocate(65536).value());
  std::ranges::fill(all[1].bytes(), std::byte{0xab});
  Intruder(pair.medium.window()).segment(number_of(all[0].local())).granules.store(300);
  { const Segment gone = std::move(all[0]); }
  CHECK(all[1].bytes()[0] == std::byte{0xab});
}

TEST_CASE("a write from a mapped segment onto itself copies the bytes that were there before") {
  const WindowFile window("mapped-self");
  Side side = Side::open(window.device("?size=64M"), {.threads = Threads::inlined});
  const RemoteSegment self = side.device.import(side.line()).value().segment;
  const auto data = bytes_like(4000, 5);
  for (int i = 0; i < 2; ++i) {
    std::ranges::copy(data, side.segment.bytes().begin());
    REQUIRE(run_one(side.jetty, write(side.segment.bytes().first(4000), self, 8)).ok());
    CHECK(same(side.segment.bytes().subspan(8, 4000), data));
  }
}

TEST_CASE(
    "a large write is copied in parts, so other works progress; flushed halfway, it ends unknown") {
  Pair pair(true);
  REQUIRE(run_one(pair.user.jetty, write(bytes_like(8, 1), pair.there)).ok());
  Jetty other = pair.user.device.jetty({.berths = 4}).value();
  const auto large = bytes_like(segment_bytes, 2);
  const auto small = bytes_like(8, 3);
  Completion completion;
  REQUIRE(pair.user.jetty.post(write(large, pair.there)) == 1);
  CHECK(pair.user.jetty.poll({&completion, 1}) == 0);
  REQUIRE(other.post(write(small, pair.there)) == 1);
  CHECK(other.poll({&completion, 1}) == 1);
  CHECK(completion.ok());
  CHECK(pair.user.jetty.poll({&completion, 1}) == 0);
  REQUIRE(pair.user.jetty.flush().ok());
  REQUIRE(pair.user.jetty.poll({&completion, 1}) == 1);
  CHECK(completion.status == Status::unknown);
  REQUIRE(pair.user.jetty.reset().ok());
  CHECK(run_one(pair.user.jetty, write(large, pair.there)).ok());
  CHECK(same(pair.segment.bytes(), large));
}

TEST_CASE(
    "allocating more than the window has is refused, and takes no memory from other segments") {
  Pair pair(true);
  std::ranges::fill(pair.segment.bytes(), std::byte{0xab});
  for (const size_t bytes :
       {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 65'535, SIZE_MAX / 2, SIZE_MAX / 4}) {
    const auto none = pair.user.device.allocate(bytes);
    REQUIRE_FALSE(none.ok());
    CHECK(none.status() == Status::no_resources);
  }
  const Segment more = pair.user.device.allocate(segment_bytes).value();
  std::ranges::fill(more.bytes(), std::byte{1});
  const auto still = [](std::byte byte) { return byte == std::byte{0xab}; };
  CHECK(std::ranges::all_of(pair.segment.bytes(), still));
  CHECK(run_one(pair.user.jetty, write(bytes_like(100, 1), pair.there)).ok());
}

TEST_CASE("a write of an aligned word of 1 to 8 bytes is one store") {
  Pair pair(true);
  const auto changes_whole = [&]<class Word>(Word ones) {
    Word& word = *reinterpret_cast<Word*>(pair.segment.bytes().data());
    std::atomic<bool> done{false};
    uint64_t torn = 0;
    std::thread watcher([&] {
      while (!done) {
        const Word seen = std::atomic_ref(word).load(std::memory_order_relaxed);
        torn += seen != 0 && seen != ones;
      }
    });
    for (int i = 0; i < 20'000; ++i) {
      const Word value = i % 2 == 0 ? ones : Word{};
      run_one(pair.user.jetty, write(std::as_bytes(std::span(&value, 1)), pair.there));
    }
    done = true;
    watcher.join();
    CHECK(torn == 0);
  };
  changes_whole(uint8_t{0xff});
  changes_whole(uint16_t{0xffff});
  changes_whole(uint32_t{0xffffffff});
  changes_whole(~uint64_t{0});
}

TEST_CASE(
    "a copy whose notification was not sent ends unknown, because the data has been written") {
  const WindowFile window("untold");
  Side left = Side::open(window.device("?size=64M"), {.threads = Threads::inlined});
  Jetty other = left.device.jetty({.berths = 256}).value();
  // The right device is not polled once there is a channel, so the ring to it fills up.
  Side right = Side::open(window.device(""), {.threads = Threads::inlined});
  const Imported there = left.device.import(right.line()).value();
  const auto message = bytes_like(4000, 1);
  std::vector<std::byte> room(4000);
  REQUIRE(right.jetty.receive(room));
  REQUIRE(other.post(send(message, there.jetty)) == 1);
  for (bool ended = false; !ended;) {
    std::array<Completion, 4> some;
    (void)right.jetty.poll(some);
    ended = other.poll(some) > 0;
  }
  for (int i = 0; i < 200; ++i) REQUIRE(other.post(send(message, there.jetty)) == 1);
  REQUIRE(left.jetty.wait(1ms).empty());
  // The first work posted after a completion is copied and, if possible, sent immediately.
  std::vector<std::byte> word(8);
  REQUIRE(run_one(left.jetty, read(word, there.segment)).ok());
  const auto data = bytes_like(300, 2);
  const uint64_t copied = left.device.stats().value().copied;
  REQUIRE(left.jetty.post(write(data, there.segment).to(there.jetty).immediate(1)) == 1);
  REQUIRE(left.jetty.wait(1ms).empty());
  CHECK(left.device.stats().value().copied == copied + 1);
  CHECK(same(right.segment.bytes().first(300), data));
  REQUIRE(left.jetty.flush().ok());
  CHECK(collect(left.jetty, 1).at(0).status == Status::unknown);
}

// Simulates a process that was stopped in the middle of a copy: its slot says that it holds the
// segment.
TEST_CASE("memory of a segment that a process holds is not given to others") {
  Pair pair(true);
  const auto bytes = bytes_like(100, 1);
  REQUIRE(run_one(pair.user.jetty, write(bytes, pair.there)).ok());
  Intruder stopped(pair.medium.window());
  const uint32_t number = number_of(pair.there);
  // The hold is recorded in the slot of a third device, which is alive.
  const Side third = Side::open(pair.medium.window().device(""), {.threads = Threads::inlined});
  auto& hold = stopped.slot(2).hold.segment;
  REQUIRE(stopped.slot(2).record.generation.load() % 2 == 1);
  hold.store(number + 1);
  CHECK(pair.segment.unregister().ok());  // does not wait for the hold, which never ends
  CHECK(run_one(pair.user.jetty, write(bytes, pair.there)).status == Status::remote_access);
  pair.segment = pair.owner.device.allocate(4096).value();
  // Allocates all memory that is left; the held memory is not part of it.
  std::vector<Segment> all;
  for (;;) {
    Segment more = pair.owner.device.allocate(drivers::cxl::least_granule_bytes).value();
    if (!more.local().mapped()) break;
    const uint32_t at = number_of(more.local());
    REQUIRE((at < number || at >= number + segment_bytes / drivers::cxl::least_granule_bytes));
    all.push_back(std::move(more));
  }
  hold.store(0);
  Segment last = pair.owner.device.allocate(segment_bytes).value();
  CHECK(last.local().mapped());
  CHECK(last.unregister().ok());
}

TEST_CASE("holds of a dead process end, and its memory is given to others") {
  const WindowFile window("mapped-dead");
  Side here = Side::open(window.device("?size=16M"), {.threads = Threads::inlined});
  const uint32_t granules = Intruder(window).parts().granules;
  // The child takes all of the memory, records a hold on the parent's segment, and dies.
  const uint32_t ours = number_of(here.segment.local());
  const int taken = in_child([&] {
    Side there = Side::open(window.device(""), {.threads = Threads::inlined});
    std::vector<Segment> all;
    do all.push_back(there.device.allocate(drivers::cxl::least_granule_bytes).value());
    while (all.back().local().mapped());
    Intruder hand(window);
    hand.slot(1).hold.segment.store(ours + 1);
    _exit(static_cast<int>(all.size() - 1));
    return 0;
  });
  CHECK(static_cast<uint32_t>(taken) == granules - 2 * (segment_bytes >> 16));
  CHECK(here.segment.unregister().ok());
  { const Segment gone = std::move(here.segment); }
  const Segment all = here.device.allocate(granules * drivers::cxl::least_granule_bytes).value();
  CHECK(all.local().mapped());
}

}  // namespace
}  // namespace urma::test
