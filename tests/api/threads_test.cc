// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <atomic>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

TEST_CASE("128 Jetties on 8 threads share one channel to a peer, and each work executes once") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:");
    Side user = Side::open("udp:", {.threads = mode});
    const std::string line = owner.line();
    std::atomic<uint64_t> completed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const Imported remote = user.device.import(line).value();
        std::vector<Jetty> jetties;
        for (int j = 0; j < 16; ++j) jetties.push_back(user.device.jetty({.berths = 8}).value());
        const auto bytes = bytes_like(200, static_cast<unsigned>(t));
        for (int round = 0; round < 20; ++round) {
          for (Jetty& jetty : jetties) {
            while (jetty.post(write(bytes, remote.segment, static_cast<uint64_t>(t) * 4096)) == 0) {
              completed += jetty.wait(patience).size();
            }
          }
        }
        for (Jetty& jetty : jetties) {
          while (jetty.vacant_berths() < 8) completed += jetty.wait(patience).size();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(completed == 8 * 16 * 20);
    CHECK(user.device.stats().value().channels == 1);
    CHECK(owner.device.stats().value().channels == 1);
  }
}

// The calling thread, and threads that it starts, run on one processor until this object is
// destroyed.
class OneProcessor {
 public:
  OneProcessor() {
    REQUIRE(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
    }
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  OneProcessor(const OneProcessor&) = delete;
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// A thread that polls for its whole slice of the scheduler delays the threads that would serve it.
TEST_CASE(
    "threads that poll yield: on one processor, many of them need only a few polls for a work") {
  constexpr size_t pollers = 32;
  constexpr uint64_t pairs = 25;
  constexpr uint64_t most_polls =
      100;  // for each pair: 4 are needed, and 900 if threads do not yield
  const OneProcessor one;
  for (const Threads mode : {Threads::automatic, Threads::served, Threads::inlined}) {
    INFO("mode " << static_cast<int>(mode));
    Side owner = Side::open("udp:", {.threads = Threads::served}, {.berths = 1, .receives = 256});
    Device user = urma::open("udp:", {.threads = mode}).value();
    const Segment words =
        owner.device.allocate(64, Rights::read | Rights::write | Rights::atomic).value();
    const RemoteSegment word = user.import(words.descriptor()).value().segment;
    const RemoteJetty receiver = user.import(owner.jetty.descriptor()).value().jetty;
    for (uint64_t i = 0; i < 256; ++i) {
      REQUIRE(owner.jetty.receive(owner.segment.bytes().subspan(64 * i, 64), i));
    }
    std::atomic<uint64_t> ok{0};
    std::atomic<uint64_t> polls{0};
    std::atomic<uint64_t> refused{0};
    std::atomic<bool> stop{false};
    std::thread receives([&] {
      for (uint64_t arrived = 0; arrived < pollers * pairs && !stop;) {
        for (const Completion& arrival : owner.jetty.wait(100ms)) {
          ++arrived;
          const auto slot = owner.segment.bytes().subspan(64 * arrival.tag, 64);
          refused += !owner.jetty.receive(slot, arrival.tag);
        }
      }
    });
    std::vector<std::thread> threads;
    for (size_t t = 0; t < pollers; ++t) {
      threads.emplace_back([&] {
        Jetty jetty = user.jetty({.berths = 2}).value();
        const auto bytes = bytes_like(16, 1);
        for (uint64_t i = 0; i < pairs; ++i) {
          const auto both = {send(bytes, receiver), fetch_add(word, 0, 1)};
          if (jetty.post(both) != 2) return;
          std::array<Completion, 2> out;
          for (size_t done = 0, polled = 0; done < 2; done += polled) {
            polled = jetty.poll(std::span(out).subspan(done));
            ++polls;
          }
          ok += out[0].ok() && out[1].ok();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    stop = ok != pollers * pairs;
    receives.join();
    CHECK(refused == 0);
    CHECK(ok == pollers * pairs);
    CHECK(polls <= most_polls * pollers * pairs);
  }
}

TEST_CASE("one thread posts to a Jetty while another polls it") {
  Side owner = Side::open("udp:");
  Side user = Side::open("udp:");
  const Imported remote = user.device.import(owner.line()).value();
  constexpr uint64_t works = 20'000;
  const auto bytes = bytes_like(64, 1);
  std::thread poster([&] {
    for (uint64_t next = 0; next < works;)
      next += user.jetty.post(write(bytes, remote.segment).tag(next));
  });
  uint64_t expected = 0;
  std::vector<bool> seen(works);
  while (expected < works) {
    const auto completions = user.jetty.wait(patience);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& completion : completions) {
      REQUIRE(completion.ok());
      REQUIRE_FALSE(seen[completion.tag]);
      seen[completion.tag] = true;
      ++expected;
    }
  }
  poster.join();
}

// The waiting thread makes no call of the library: it reads its own memory.
TEST_CASE("a thread that sees the notified value sees the data, too") {
  constexpr uint64_t word_at = 1'000'000;
  constexpr uint64_t rounds = 100;
  Side owner = Side::open("udp:");
  Side user = Side::open("udp:");
  const Imported remote = user.device.import(owner.line()).value();
  const size_t sizes[] = {0, 64, 65'536, 200'000};
  const auto size_of = [&](uint64_t round) { return sizes[round % std::size(sizes)]; };
  std::atomic<uint64_t> seen{0};
  std::atomic<bool> stop{false};
  uint64_t wrong = 0;
  std::thread looker([&] {
    const std::span<std::byte> memory = owner.segment.bytes();
    const std::atomic_ref word(*reinterpret_cast<uint64_t*>(memory.data() + word_at));
    for (uint64_t round = 1; round <= rounds; ++round) {
      while (word.load(std::memory_order_acquire) != round) {
        if (stop) return;
        std::this_thread::yield();
      }
      const auto expected = bytes_like(size_of(round), static_cast<unsigned>(round));
      wrong += !std::equal(expected.begin(), expected.end(), memory.begin());
      seen = round;
    }
  });
  uint64_t done = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    const auto bytes = bytes_like(size_of(round), static_cast<unsigned>(round));
    REQUIRE(user.jetty.post(write(bytes, remote.segment).notify(remote.segment, word_at, round)) ==
            1);
    for (const Completion& completion : collect(user.jetty, 1)) done += completion.ok();
    if (done != round) break;
    while (seen != round) std::this_thread::yield();
  }
  stop = true;
  looker.join();
  CHECK(done == rounds);
  CHECK(wrong == 0);
}

TEST_CASE("control calls from many threads succeed while works are in flight") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:");
    Side user = Side::open("udp:", {.threads = mode});
    const Imported remote = user.device.import(owner.line()).value();
    std::atomic<bool> stop{false};
    std::atomic<int> failed{0};
    std::thread traffic([&] {
      const auto bytes = bytes_like(5000, 1);
      while (!stop) {
        if (user.jetty.post(write(bytes, remote.segment)) == 1) {
          for (const Completion& done : user.jetty.wait(patience)) failed += !done.ok();
        }
      }
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          Segment segment = user.device.allocate(8192).value();
          Jetty jetty = user.device.jetty({.berths = 4, .receives = 4}).value();
          const Imported self = user.device.import(segment.descriptor()).value();
          const auto bytes = bytes_like(100, 1);
          failed += jetty.post(write(bytes, self.segment)) != 1;
          const auto done = jetty.wait(patience);
          failed += done.size() != 1 || !done[0].ok();
          jetty.flush().value();
          jetty.reset().value();
          (void)user.device.stats();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    stop = true;
    traffic.join();
    CHECK(failed == 0);
  }
}

TEST_CASE("control calls that wait do not delay other control calls") {
  Side side = Side::open("udp:");
  Side owner = Side::open("udp:127.0.0.77");
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back(
        [&] { found += side.device.import("urma://127.0.0.77:4792/late", patience).ok(); });
  }
  std::this_thread::sleep_for(100ms);
  // None of the imports can end before the name is published.
  for (int i = 0; i < 10; ++i) CHECK(side.device.stats().ok());
  CHECK(found == 0);
  owner.device.publish("late", owner.segment, everyone()).value();
  for (std::thread& thread : threads) thread.join();
  CHECK(found == 20);
}

TEST_CASE("close ends each wait, and each later poll returns closed") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side side = Side::open("udp:", {.threads = mode});
    std::vector<Completion> told;
    std::thread waiting([&] {
      const auto completions = side.jetty.wait(Duration::max());
      told.assign(completions.begin(), completions.end());
    });
    std::this_thread::sleep_for(50ms);
    std::thread twice([&] { side.device.close(); });
    side.device.close();
    twice.join();
    waiting.join();
    REQUIRE(told.size() == 1);
    CHECK(told[0].status == Status::closed);
    const auto bytes = bytes_like(10, 1);
    CHECK(side.jetty.post(send(bytes, side.jetty.local())) == 0);
    CHECK(side.jetty.wait(1s).front().status == Status::closed);
  }
}

TEST_CASE("works that are posted while the device closes complete") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    for (int round = 0; round < 30; ++round) {
      Side side = Side::open("udp:", {.threads = mode}, {.berths = 4096, .receives = 1});
      const auto bytes = bytes_like(10, 1);
      const RemoteSegment self = side.segment.local();
      std::atomic<bool> posting{false};
      size_t posted = 0;
      std::thread poster([&] {
        for (size_t i = 0; i < 4000; ++i) {
          const size_t taken = side.jetty.post(write(bytes, self));
          posting = true;
          if (taken == 0) break;
          posted += taken;
        }
      });
      while (!posting) std::this_thread::yield();
      side.device.close();
      poster.join();
      size_t ended = 0;
      for (bool closed = false; !closed;) {
        const auto completions = side.jetty.wait(1s);
        if (completions.empty()) break;
        closed = completions.front().status == Status::closed;
        if (!closed) ended += completions.size();
      }
      CHECK(ended == posted);
    }
  }
}

TEST_CASE("a thread that polls while another thread closes gets every completion before closed") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    for (int round = 0; round < 20; ++round) {
      Side owner = Side::open("udp:", {}, {.berths = 1, .receives = 1});
      Side user = Side::open("udp:", {.threads = mode});
      const Imported remote = user.device.import(owner.line()).value();
      Jfc jfc = user.device.jfc(128).value();
      std::vector<Jetty> jetties;
      const auto bytes = bytes_like(100, 1);
      for (int i = 0; i < 4; ++i) {
        jetties.push_back(user.device.jetty({.berths = 32, .completions = &jfc}).value());
        // These messages are never received; their works end when the device is closed.
        const std::vector<Work> works(32, send(bytes, remote.jetty));
        REQUIRE(jetties.back().post(works) == works.size());
      }
      size_t before = 0;
      size_t after = 0;
      std::thread poller([&] {
        bool told = false;
        for (int i = 0; i < 100; i += told) {
          for (const Completion& completion : jfc.wait(round % 2 ? 1s : 0s)) {
            const bool closed = completion.status == Status::closed;
            told = told || closed;
            (told ? after : before) += !closed;
          }
        }
      });
      std::this_thread::sleep_for(1ms * (round % 5));
      user.device.close();
      poller.join();
      CHECK(before == 128);
      CHECK(after == 0);
    }
  }
}

// The sleeping thread has chosen its wake-up time in its last pass. A pass of another thread may
// bring an earlier deadline.
TEST_CASE(
    "a sleeping device wakes in time for packets that control calls of another thread have sent") {
  Side owner = Side::open("udp:");
  Side user = Side::open("fault(loss=50%):udp:");
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(100, 1);
  for (int round = 0; round < 60; ++round) {
    (void)user.device.stats();
    REQUIRE(user.jetty.post(write(bytes, remote.segment)) == 1);
    (void)user.device.stats();
    REQUIRE(collect(user.jetty, 1).size() == 1);
  }
}

TEST_CASE("a Jetty that is refused reserves no entries of its shared queue, also during traffic") {
  Side owner = Side::open("udp:");
  const DeviceOptions options{.limits = {.jetties = 1}};
  Device device = urma::open("udp:", options).value();
  Jfc jfc = device.jfc(64).value();
  Jetty jetty = device.jetty({.berths = 16, .completions = &jfc}).value();
  const Imported remote = device.import(owner.line()).value();
  const auto bytes = bytes_like(100, 1);
  size_t posted = 0;
  for (int i = 0; i < 10; ++i) {
    posted += jetty.post(write(bytes, remote.segment));
    // If the refused Jetty kept its reservation, the next error would be that the queue is full.
    const auto refused = device.jetty({.berths = 48, .completions = &jfc});
    REQUIRE(refused.status() == Status::no_resources);
    CHECK(refused.error().message.find("Limits::jetties") != std::string::npos);
  }
  for (size_t polled = 0; polled < posted;) {
    const auto done = jfc.wait(patience);
    REQUIRE_FALSE(done.empty());
    polled += done.size();
  }
}

TEST_CASE("a destroyed Jetty returns the entries that it had reserved of a shared queue") {
  Side owner = Side::open("udp:");
  Device device = urma::open("udp:").value();
  Jfc jfc = device.jfc(64).value();
  const Imported remote = device.import(owner.line()).value();
  const auto bytes = bytes_like(100, 1);
  for (int i = 0; i < 200; ++i) {
    {
      Jetty jetty = device.jetty({.berths = 32, .completions = &jfc}).value();
      REQUIRE(jetty.post({write(bytes, remote.segment), write(bytes, remote.segment)}) == 2);
    }
    // Completions of a destroyed Jetty can still be polled. Polling them releases its entries.
    std::array<Completion, 8> out;
    for (size_t polled = 0; polled < 2;) {
      const size_t count = jfc.poll(out);
      REQUIRE(polled + count <= 2);
      polled += count;
    }
  }
  Jetty one = device.jetty({.berths = 64, .completions = &jfc}).value();
}

TEST_CASE("an idle device sleeps") {
  // Addresses of its own: packets for a device that has ended would wake the next one there.
  Side side = Side::open("udp:127.0.0.236");
  Side peer = Side::open("udp:127.0.0.237");
  const Imported remote = side.device.import(peer.line()).value();
  const auto bytes = bytes_like(10, 1);
  REQUIRE(run_one(side.jetty, write(bytes, remote.segment)).ok());
  const auto passes_in = [&](Duration time) {
    const uint64_t before = side.device.stats().value().passes;
    std::this_thread::sleep_for(time);
    return side.device.stats().value().passes - before;
  };
  constexpr uint64_t of_stats = 4;  // the most passes that two calls of `stats` make
  // The last timers expire after 2 s, or later on a loaded machine.
  std::this_thread::sleep_for(2s);
  for (int tries = 0; tries < 10 && passes_in(500ms) > of_stats; ++tries) {
  }
  // From then on the device sleeps for good.
  CHECK(passes_in(1s) <= of_stats);
}

}  // namespace
}  // namespace urma::test
