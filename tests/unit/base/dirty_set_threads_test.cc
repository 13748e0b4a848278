// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include "base/dirty_set.h"
#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

// The data that a posting thread publishes before it marks its queue. It is not atomic, so that the
// thread sanitizer checks whether mark and take order the accesses.
struct Mailbox {
  uint64_t posted = 0;
  std::atomic<uint64_t> taken{0};  // returns `posted` to its posting thread
};

TEST_CASE("no mark of any thread is lost, and the taking thread sees stores made before the mark") {
  constexpr uint32_t posters = 3;
  constexpr uint32_t each =
      70;  // queues of one posting thread, interleaved with those of the others
  constexpr uint64_t posts = 3000;
  DirtySet set(posters * each);
  std::vector<Mailbox> boxes(posters * each);
  std::atomic<uint32_t> running{posters};

  std::vector<std::thread> threads;
  for (uint32_t poster = 0; poster < posters; ++poster) {
    threads.emplace_back([&, poster] {
      Prng prng(poster);
      for (uint64_t i = 1; i <= posts; ++i) {
        const auto member = static_cast<uint32_t>(prng.below(each)) * posters + poster;
        Mailbox& box = boxes[member];
        // As long as a queue is marked, it belongs to the engine.
        while (box.taken.load(std::memory_order_acquire) != box.posted) std::this_thread::yield();
        ++box.posted;
        set.mark(member);
      }
      --running;
    });
  }
  uint64_t seen = 0;
  uint64_t spurious = 0;
  for (bool last = false; !last;) {
    // `running` is read before the take, so that this take sees all marks of posting threads that
    // have ended.
    last = running == 0;
    set.take([&](uint32_t member) {
      Mailbox& box = boxes[member];
      const uint64_t before = box.taken.load(std::memory_order_relaxed);
      spurious += box.posted != before + 1;
      seen += box.posted - before;
      box.taken.store(box.posted, std::memory_order_release);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(seen == posters * posts);
  CHECK(spurious == 0);
  CHECK_FALSE(set.any());
}

TEST_CASE("a mark is visible once it is made, while other threads mark its neighbours") {
  constexpr int rounds = 200'000;
  DirtySet set(64);
  std::atomic<int> round{0};
  std::atomic<int> answered{0};
  uint64_t invisible[2] = {};
  const auto mark = [&](uint32_t member) {
    set.mark(member);
    invisible[member] += !set.any();
  };
  std::thread other([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (round.load() < i) {
      }
      mark(1);
      answered = i;
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    round = i;
    mark(0);
    while (answered.load() < i) {
    }
    set.take([](uint32_t) {});
  }
  other.join();
  CHECK(invisible[0] + invisible[1] == 0);
}

}  // namespace
}  // namespace urma::test
