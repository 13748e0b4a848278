// SPDX-License-Identifier: Apache-2.0
// Small works on mapped memory have usually ended when `post` returns.

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr Threads all_modes[] = {Threads::inlined, Threads::automatic, Threads::served};

// A device in each mode, whose counters are not reported, and an owner of mapped memory.
struct InPlace {
  explicit InPlace(Threads threads)
      : user(Side::open(medium.text(), {.threads = threads, .observable = false})),
        owner(Side::open(medium.text(), {.threads = Threads::served})) {
    // Makes the channel.
    REQUIRE(run_one(user.jetty, read(back, there)).ok());
  }

  // The owner sends a message to the user.
  void send_message() {
    const RemoteJetty told = owner.device.import(user.line()).value().jetty;
    REQUIRE(user.jetty.receive(inbox, 3));
    REQUIRE(owner.jetty.post(send(data, told)) == 1);
  }

  const std::vector<std::byte> data = bytes_like(8, 1);
  std::array<std::byte, 8> inbox{};
  Medium medium{"cxl:"};
  Side user;
  Side owner;
  RemoteSegment there = user.device.import(owner.segment.descriptor()).value().segment;
  std::array<std::byte, 8> back{};
};

TEST_CASE("a small work on mapped memory has ended when post returns, and completes once") {
  for (const Threads threads : all_modes) {
    InPlace pair(threads);
    const std::span data(pair.data);
    std::array<Completion, 1> more;
    unsigned in_place = 0;
    for (uint64_t round = 0; round < 64; ++round) {
      // Passes that follow one another, after which works are copied in post.
      for (int i = 0; i < 4; ++i) REQUIRE(pair.user.jetty.poll(more) == 0);
      REQUIRE(pair.user.jetty.post(write(data, pair.there, 8 * round).tag(round)) == 1);
      in_place += same(pair.owner.segment.bytes().subspan(8 * round, 8), data);
      const auto ended = pair.user.jetty.wait(patience);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].ok());
      CHECK(ended[0].tag == round);
      CHECK(same(pair.owner.segment.bytes().subspan(8 * round, 8), data));
    }
    // Passes do the others: the service thread, if it is the one that has the token.
    if (threads != Threads::served) CHECK(in_place > 0);
    CHECK(pair.user.jetty.poll(more) == 0);
    CHECK(pair.user.device.stats().value().copied == 65);
  }
}

TEST_CASE("of works that are posted together, those before the first large one end in post") {
  for (const Threads threads : all_modes) {
    InPlace pair(threads);
    const auto data = bytes_like(200'000, 2);
    std::vector<Work> works;
    for (size_t at : {0, 8, 16}) works.push_back(write(std::span(data).first(8), pair.there, at));
    works[1].unsignalled();
    works.push_back(write(data, pair.there, 24));
    works.push_back(write(std::span(data).first(8), pair.there, 16).fenced());
    REQUIRE(pair.user.jetty.post(works) == works.size());
    size_t ended = 0;
    while (ended < works.size() - 1) {
      const auto some = pair.user.jetty.wait(patience);
      REQUIRE_FALSE(some.empty());
      for (const Completion& one : some) CHECK(one.ok());
      ended += some.size();
    }
    CHECK(same(pair.owner.segment.bytes().subspan(24, data.size()), data));
    for (size_t at : {0, 8, 16}) {
      CHECK(same(pair.owner.segment.bytes().subspan(at, 8), std::span(data).first(8)));
    }
    CHECK(pair.user.jetty.vacant_berths() == 64);
  }
}

TEST_CASE("works of all kinds end in post, and a refused one completes behind them") {
  InPlace pair(Threads::inlined);
  const Rights all = Rights::read | Rights::write | Rights::atomic;
  const Segment segment = pair.owner.device.allocate(4096, all).value();
  const RemoteSegment there = pair.user.device.import(segment.descriptor()).value().segment;
  auto word = std::bit_cast<std::array<std::byte, 8>>(uint64_t{7});
  std::array<std::byte, 4> low{};
  std::array<std::byte, 4> high{};
  uint64_t fetched = 0;
  const std::array<Buffer, 2> gathered{Buffer{word.data(), 4}, Buffer{word.data() + 4, 4}};
  const std::array<Buffer, 2> scattered{Buffer{low.data(), 4}, Buffer{high.data(), 4}};
  for (uint64_t round = 0; round < 64; ++round) {
    std::array<Completion, 1> more;
    for (int i = 0; i < 4; ++i) REQUIRE(pair.user.jetty.poll(more) == 0);
    const std::vector<Work> works{
        write(gathered, there, 8).tag(1),
        fetch_add(there, 8, 5).into(&fetched).tag(2),
        read(scattered, there, 8).tag(3).unsignalled(),
        write(word, there, there.bytes - 7).tag(4).unsignalled(),
        write(word, there, 16).tag(5).strong(),
    };
    REQUIRE(pair.user.jetty.post(works) == works.size());
    std::vector<Completion> ended;
    while (ended.size() < 4) {
      const auto some = pair.user.jetty.wait(patience);
      REQUIRE_FALSE(some.empty());
      ended.insert(ended.end(), some.begin(), some.end());
    }
    REQUIRE(ended.size() == 4);
    CHECK((ended[0].tag == 1 && ended[0].ok() && ended[0].bytes == 8));
    CHECK((ended[1].tag == 2 && ended[1].ok() && ended[1].fetched() == 7));
    CHECK((ended[2].tag == 4 && ended[2].status == Status::remote_access));
    CHECK((ended[3].tag == 5 && ended[3].ok()));
    CHECK(fetched == 7);
    CHECK(low[0] == std::byte{12});
    CHECK(pair.user.jetty.vacant_berths() == 64);
  }
}

TEST_CASE("works that end in post take permits until their completion is polled") {
  InPlace pair(Threads::inlined);
  const Work one = write(pair.data, pair.there);
  for (int round = 0; round < 64; ++round) {
    std::array<Completion, 4> more;
    for (int i = 0; i < 4; ++i) REQUIRE(pair.user.jetty.poll(more) == 0);
    const std::vector<Work> unsignalled(80, Work(one).unsignalled());
    // The last berth is for a signalled work.
    REQUIRE(pair.user.jetty.post(unsignalled) == 63);
    REQUIRE(pair.user.jetty.post({&unsignalled[0], 1}) == 0);
    REQUIRE(pair.user.jetty.post({&one, 1}) == 1);
    CHECK(pair.user.jetty.vacant_berths() == 0);
    REQUIRE(pair.user.jetty.wait(patience).size() == 1);
    CHECK(pair.user.jetty.vacant_berths() == 64);
  }
}

// A post copies at most 256 KiB, so that other threads do not wait longer for the engine than for a
// pass.
TEST_CASE("slices of 64 KiB end in post, as many as a pass takes") {
  constexpr size_t slice = 64 << 10;
  constexpr size_t slices = 6;
  InPlace pair(Threads::inlined);
  size_t most = 0;
  for (uint8_t round = 1; round < 64; ++round) {
    const std::vector<std::byte> data(slice, std::byte{round});
    std::vector<Work> works;
    for (size_t i = 0; i < slices; ++i) works.push_back(write(data, pair.there, i * slice));
    size_t polled = 0;
    size_t posted = 0;
    // The first polls of a thread do not give way. If the machine is busy, others do, for longer
    // than a post may put off the next pass.
    std::thread([&] {
      std::array<Completion, 1> more;
      for (int i = 0; i < 4; ++i) polled += pair.user.jetty.poll(more);
      posted = pair.user.jetty.post(works);
    }).join();
    REQUIRE(polled == 0);
    REQUIRE(posted == slices);
    size_t in_place = 0;
    while (in_place < slices && pair.owner.segment.bytes()[in_place * slice] == std::byte{round}) {
      ++in_place;
    }
    most = std::max(most, in_place);
    for (size_t ended = 0; ended < slices;) {
      const auto some = pair.user.jetty.wait(patience);
      REQUIRE_FALSE(some.empty());
      for (const Completion& one : some) CHECK(one.ok());
      ended += some.size();
    }
    for (size_t i = 0; i < slices; ++i) {
      CHECK(same(pair.owner.segment.bytes().subspan(i * slice, slice), data));
    }
  }
  CHECK(most == 4);
}

TEST_CASE("a work is not copied in post while works that were posted before wait") {
  const std::vector<std::byte> older(64 << 10, std::byte{0xff});
  InPlace pair(Threads::inlined);
  for (int round = 0; round < 64; ++round) {
    std::array<Completion, 1> more;
    for (int i = 0; i < 4; ++i) REQUIRE(pair.user.jetty.poll(more) == 0);
    // A post copies four of these.
    const std::vector<Work> works(6, write(older, pair.there));
    REQUIRE(pair.user.jetty.post(works) == works.size());
    const Work last = write(pair.data, pair.there);
    REQUIRE(pair.user.jetty.post({&last, 1}) == 1);
    for (size_t ended = 0; ended < works.size() + 1;) {
      const auto some = pair.user.jetty.wait(patience);
      REQUIRE_FALSE(some.empty());
      for (const Completion& one : some) CHECK(one.ok());
      ended += some.size();
    }
    CHECK(same(pair.owner.segment.bytes().first(8), pair.data));
  }
}

// Nothing but the copy itself wakes the thread that waits. Without a descriptor, a thread that is
// not woken looks again after 100 ms.
TEST_CASE("a copy in post wakes the thread that waits for its completion") {
  constexpr uint64_t rounds = 3000;
  constexpr uint64_t most_late = 10;  // if the machine is busy
  for (const Threads threads : all_modes) {
    for (const bool at_descriptor : {false, true}) {
      if (at_descriptor && threads == Threads::inlined) continue;
      InPlace pair(threads);
      Jetty& jetty = pair.user.jetty;
      const int descriptor = at_descriptor ? jetty.fd().value() : -1;
      std::atomic<uint64_t> taken = 0;
      std::atomic<bool> lost = false;
      std::thread poster([&] {
        for (uint64_t round = 0; round < rounds && !lost; ++round) {
          while (taken < round && !lost) std::this_thread::yield();
          // So that the waiting thread is met while it looks, while it falls asleep, and asleep.
          if (round % 32 == 0) std::this_thread::sleep_for(5us * (round % 128));
          for (uint64_t pause = round % 64; pause > 0; --pause) (void)taken.load();
          if (jetty.post(write(pair.data, pair.there)) != 1) lost = true;
        }
      });
      uint64_t late = 0;
      for (uint64_t seen = 0; seen < rounds && !lost; taken = seen) {
        std::array<Completion, 4> out;
        const auto begin = std::chrono::steady_clock::now();
        size_t some = at_descriptor ? jetty.poll(out) : jetty.wait(patience).size();
        if (at_descriptor && some == 0) {
          if (jetty.arm() && !readable(descriptor)) lost = true;
          some = jetty.poll(out);
        }
        if (some > 1 || (some == 0 && !at_descriptor)) lost = true;
        seen += some;
        late += std::chrono::steady_clock::now() - begin > 50ms;
      }
      poster.join();
      CHECK_FALSE(lost);
      CHECK(late <= most_late);
    }
  }
}

TEST_CASE("a thread whose works are all copied still receives messages") {
  InPlace pair(Threads::inlined);
  pair.send_message();
  // The message may be on its way for the first 100,000 posts or so.
  unsigned posts = 0;
  for (bool received = false; !received;) {
    REQUIRE(++posts <= 1'000'000);
    // A poll that finds a completion runs no pass.
    REQUIRE(pair.user.jetty.post(write(pair.data, pair.there)) == 1);
    std::array<Completion, 1> one;
    REQUIRE(pair.user.jetty.poll(one) == 1);
    received = one[0].operation == Operation::receive;
  }
  CHECK(same(pair.inbox, pair.data));
}

TEST_CASE("a thread that posts rarely, and finds each work copied, still runs its device") {
  InPlace pair(Threads::inlined);
  for (int i = 0; i < 8; ++i) REQUIRE(run_one(pair.user.jetty, write(pair.data, pair.there)).ok());
  pair.send_message();
  unsigned posts = 0;
  for (bool received = false; !received;) {
    REQUIRE(++posts <= 4);
    std::this_thread::sleep_for(20ms);
    REQUIRE(pair.user.jetty.post(write(pair.data, pair.there)) == 1);
    for (const Completion& one : pair.user.jetty.wait(patience)) {
      received = received || one.operation == Operation::receive;
    }
  }
  CHECK(same(pair.inbox, pair.data));
}

}  // namespace
}  // namespace urma::test
