// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "tests/api/helpers.h"

// Tests Threads::automatic: the thread that runs the engine changes all the time, which
// applications must not notice.

namespace urma::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Found {
  uint64_t ended = 0;
  uint64_t good = 0;
};

// Posts messages, writes and reads in turn, one at a time, with random pauses. If a wake-up is
// lost, `collect` times out.
Found exchange_with_pauses(Jetty& jetty, const Imported& to, uint64_t rounds, unsigned seed) {
  Prng prng(seed);
  auto bytes = bytes_like(3000, seed);
  Found found;
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto size = std::span(bytes).first(prng.below(bytes.size()));
    size_t posted = 0;
    switch (i % 3) {
      case 0:
        posted = jetty.post(write(size, to.segment).to(to.jetty).immediate(i));
        break;
      case 1:
        posted = jetty.post(write(size, to.segment, 4096));
        break;
      default:
        posted = jetty.post(read(size, to.segment, 8192));
        break;
    }
    for (const Completion& completion : collect(jetty, posted)) {
      ++found.ended;
      found.good += completion.ok();
    }
    if (found.ended != i + 1) break;
    const auto pause = std::chrono::microseconds(prng.below(1000));
    if (prng.below(4) == 0) std::this_thread::sleep_for(pause);
  }
  return found;
}

enum class Waiting { poll, wait, descriptor, sleep };

// Takes arrivals, choosing one of the ways to wait each time. Stops after `count` arrivals, or when
// a wait times out.
uint64_t take_in_all_ways(Jetty& jetty, uint64_t count, const std::atomic<bool>& sent,
                          unsigned seed) {
  Prng prng(seed);
  const int descriptor = jetty.fd().value();
  std::array<Completion, 8> out;
  uint64_t arrived = 0;
  const auto take = [&] {
    size_t any = 0;
    while (const size_t some = jetty.poll(out)) any += some;
    arrived += any;
    return any;
  };
  while (arrived < count || !sent) {
    const auto until = Clock::now() + std::chrono::microseconds(prng.below(1000));
    // A long wait is allowed only while further arrivals are expected.
    const bool long_enough = arrived < count && prng.below(2) == 0;
    switch (static_cast<Waiting>(prng.below(4))) {
      case Waiting::poll:
        while (Clock::now() < until) take();
        break;
      case Waiting::wait: {
        const size_t some =
            jetty.wait(long_enough ? patience : Duration(until - Clock::now())).size();
        if (some == 0 && long_enough) return arrived;
        arrived += some;
        break;
      }
      case Waiting::descriptor: {
        take();
        if (arrived >= count || !jetty.arm()) break;
        pollfd one{descriptor, POLLIN, 0};
        if (poll(&one, 1, long_enough ? 60'000 : 1) == 0 && long_enough) return arrived;
        break;
      }
      case Waiting::sleep:
        std::this_thread::sleep_until(until);
        break;
    }
  }
  return arrived;
}

TEST_CASE(
    "an engine runs whether the application polls, waits, sleeps at a descriptor or does nothing") {
  constexpr uint64_t rounds = 2100;
  for (const std::string_view driver : media) {
    for (const unsigned seed : {1U, 2U}) {
      const Medium medium(driver);
      Side owner = Side::open(medium.text());
      Side user = Side::open(medium.text());
      const Imported remote = user.device.import(owner.line()).value();
      Found found;
      std::atomic<bool> sent{false};
      std::thread peer([&] {
        found = exchange_with_pauses(user.jetty, remote, rounds, seed);
        sent = true;
      });
      const uint64_t arrived = take_in_all_ways(owner.jetty, rounds / 3, sent, seed);
      peer.join();
      INFO(driver);
      CHECK(arrived == rounds / 3);
      CHECK(found.ended == rounds);
      CHECK(found.good == rounds);
    }
  }
}

TEST_CASE("an engine runs while several threads poll, wait or sleep, each at its own queue") {
  constexpr uint64_t rounds = 900;
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text());
    const Imported memory = user.device.import(owner.line()).value();
    std::atomic<uint64_t> arrived{0};
    std::atomic<uint64_t> good{0};
    std::array<std::atomic<bool>, 3> sent{};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < sent.size(); ++i) {
      auto jetty = std::make_shared<Jetty>(owner.device.jetty({.receives = 16}).value());
      Imported target = user.device.import(jetty->descriptor()).value();
      target.segment = memory.segment;
      threads.emplace_back([&, i, target] {
        Jetty from = user.device.jetty().value();
        good += exchange_with_pauses(from, target, rounds, i).good;
        sent[i] = true;
      });
      threads.emplace_back(
          [&, i, jetty] { arrived += take_in_all_ways(*jetty, rounds / 3, sent[i], i + 10); });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(good == rounds * sent.size());
    CHECK(arrived == rounds);
  }
}

// Guards against an error that was found: the service thread ran one pass after another until the
// waiting thread next looked at the keeper.
TEST_CASE("a thread asleep at a descriptor keeps no processor busy while another thread waits") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side side = Side::open(medium.text());
    Jetty other = side.device.jetty({.receives = 1}).value();
    REQUIRE(side.jetty.fd().ok());
    std::atomic<bool> waiting{true};
    std::atomic<size_t> unasked{0};
    std::thread waiter([&] {
      while (waiting) unasked += other.wait(200ms).size();
    });
    std::this_thread::sleep_for(20ms);
    const uint64_t before = side.device.stats().value().passes;
    for (int i = 0; i < 25; ++i) {
      REQUIRE(side.jetty.arm());
      std::this_thread::sleep_for(10ms);
    }
    INFO(driver);
    CHECK(side.device.stats().value().passes - before <= 5000);
    waiting = false;
    waiter.join();
    CHECK(unasked == 0);
  }
}

// Guards against an error that was found: after the report of the counters, 100 ms after the last
// work, the waiting thread polled without sleeping.
TEST_CASE(
    "a thread that waits for a completion sleeps, also after other completions have arrived") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side side = Side::open(medium.text());
    Side peer = Side::open(medium.text());
    const Imported target = peer.device.import(side.line()).value();
    const std::array<std::byte, 8> message{};
    std::array<std::byte, 8> buffer{};
    REQUIRE(side.jetty.receive(buffer, 1));
    REQUIRE(peer.jetty.post(send(std::span(message), target.jetty)));
    REQUIRE(side.jetty.wait(patience).size() == 1);
    const uint64_t before = side.device.stats().value().passes;
    REQUIRE(side.jetty.wait(500ms).empty());
    INFO(driver);
    CHECK(side.device.stats().value().passes - before <= 5000);
  }
}

// Returns how often the threads of this process went to sleep.
uint64_t sleeps_so_far() {
  uint64_t sum = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = readdir(tasks)) {
    std::ifstream status("/proc/self/task/" + std::string(task->d_name) + "/status");
    const std::string name = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(name, 0) == 0) sum += std::stoull(line.substr(name.size()));
    }
  }
  closedir(tasks);
  return sum;
}
uint64_t sleeps_in_a_second() {
  const uint64_t before = sleeps_so_far();
  std::this_thread::sleep_for(1s);
  return sleeps_so_far() - before;
}

// Exchanges messages: both sides poll, and one of them sometimes sleeps at its descriptor.
void exchange(Side& owner, Side& user) {
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(100, 1);
  const int descriptor = owner.jetty.fd().value();
  std::array<Completion, 4> out;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(user.jetty.post(write(bytes, remote.segment).to(remote.jetty).immediate(1)) == 1);
    for (size_t ended = 0; ended < 1;) ended += user.jetty.poll(out);
    for (size_t arrived = 0; arrived < 1;) arrived += owner.jetty.poll(out);
    if (i % 10 != 0 || !owner.jetty.arm()) continue;
    pollfd one{descriptor, POLLIN, 0};
    poll(&one, 1, 1);
  }
}

TEST_CASE(
    "a thread that does nothing is not woken, and one waiting thread does not wake the others") {
  const Medium udp("udp:");
  const Medium cxl("cxl:");
  std::vector<Side> sides;
  for (const Medium* const medium : {&udp, &cxl}) {
    for (int i = 0; i < 2; ++i) sides.push_back(Side::open(medium->text()));
    exchange(sides[sides.size() - 2], sides.back());
  }
  std::this_thread::sleep_for(2500ms);  // by then the last timers have expired
  CHECK(sleeps_in_a_second() <= 20);
  std::atomic<bool> waiting{true};
  std::atomic<size_t> unasked{0};
  std::vector<std::thread> waiters;
  for (const size_t of : {0, 2}) {
    waiters.emplace_back([&, of] {
      while (waiting) unasked += sides[of].jetty.wait(400ms).size();
    });
  }
  std::this_thread::sleep_for(100ms);
  // Each waiting thread checks ten times per second whether the device was closed.
  CHECK(sleeps_in_a_second() <= 80);
  waiting = false;
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(unasked == 0);
}

}  // namespace
}  // namespace urma::test
