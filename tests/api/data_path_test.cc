// SPDX-License-Identifier: Apache-2.0
// After set-up nothing on the data path allocates or locks.

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/api/helpers.h"
#include "tests/drivers/io_ways.h"
#include "urma/observe.hpp"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
}

namespace {

std::atomic<bool> armed{false};
std::atomic<uint64_t> allocations{0};
std::atomic<uint64_t> locks{0};
std::atomic<uint64_t> looks{0};  // calls that look at directories

void note(std::atomic<uint64_t>& counter) {
  if (armed.load(std::memory_order_relaxed)) counter.fetch_add(1);
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  note(allocations);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(allocations);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note(allocations);
  return __libc_realloc(old, bytes);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  note(locks);
  return real(mutex);
}

DIR* fdopendir(int descriptor) {
  using Open = DIR* (*)(int);
  static const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "fdopendir"));
  note(looks);
  return real(descriptor);
}

}  // extern "C"

namespace urma::test {
namespace {

// Does all that an application does after set-up, on both sides.
uint64_t exchange(Side& a, Side& b, const Imported& to_b, const Imported& to_a, uint64_t rounds) {
  std::array<Completion, 32> out;
  uint64_t done = 0;
  const std::span<std::byte> large = a.segment.bytes().first(200'000);
  const std::span<std::byte> small = a.segment.bytes().first(64);
  for (uint64_t i = 0; i < rounds; ++i) {
    // Seven completions follow if all works are accepted.
    uint64_t waiting = b.jetty.receive(b.segment.bytes().subspan(500'000, 64), i);
    waiting += a.jetty.post(write(large, to_b.segment).to(to_b.jetty).immediate(i)) * 2;
    waiting += a.jetty.post(write(small, to_b.segment).notify(to_b.segment, 400'000, i));
    waiting += a.jetty.post(read(large, to_b.segment));
    waiting += a.jetty.post(send(small, to_b.jetty));
    waiting += b.jetty.post(write(small, to_a.segment));
    if (waiting != 7) return done;
    while (waiting > 0) {
      for (Side* side : {&a, &b}) {
        const size_t count = side->jetty.poll(out);
        for (size_t c = 0; c < count; ++c) done += out[c].ok();
        waiting -= count;
      }
    }
  }
  return done;
}

TEST_CASE("nothing on the data path allocates or locks after set-up") {
  std::vector<std::pair<std::string, bool>> devices = {
      {"udp:", true}, {"fault(loss=5%,dup=2%,reorder=2%):udp:", false}};
  for (const std::string& way : io_ways()) devices.emplace_back("udp:" + way, false);
  for (const auto& [text, profile] : devices) {
    const DeviceOptions options{.threads = Threads::inlined, .profile = profile};
    Side a = Side::open(text, options);
    Side b = Side::open(text, options);
    const Imported to_b = a.device.import(b.line()).value();
    const Imported to_a = b.device.import(a.line()).value();
    exchange(a, b, to_b, to_a, 5);
    allocations = locks = 0;
    armed = true;
    const uint64_t done = exchange(a, b, to_b, to_a, 50);
    armed = false;
    INFO(text);
    CHECK(done == 350);
    CHECK(allocations == 0);
    CHECK(locks == 0);
  }
}

// Posts until `works` are posted, while another thread polls `completions`.
template <class Queue>
uint64_t exchange_on_two_threads(Jetty& jetty, Queue& completions, const Imported& to,
                                 uint64_t works) {
  uint64_t done = 0;
  std::atomic<bool> ended{false};
  std::thread poller([&] {
    for (uint64_t polled = 0; polled < works;) {
      const auto some = completions.wait(patience);
      if (some.empty()) break;
      polled += some.size();
      for (const Completion& completion : some) done += completion.ok();
    }
    ended = true;
  });
  const auto bytes = bytes_like(3000, 1);
  std::this_thread::sleep_for(10ms);  // a thread that has just started may allocate
  allocations = locks = 0;
  armed = true;
  for (uint64_t posted = 0; posted < works && !ended;)
    posted += jetty.post(write(bytes, to.segment));
  while (!ended) std::this_thread::yield();
  armed = false;
  poller.join();
  return done;
}

TEST_CASE("a served device neither allocates nor locks when one thread posts and another polls") {
  Side a = Side::open("udp:");
  Side b = Side::open("udp:");
  const Imported to_b = a.device.import(b.line()).value();
  exchange_on_two_threads(a.jetty, a.jetty, to_b, 100);
  CHECK(exchange_on_two_threads(a.jetty, a.jetty, to_b, 5000) == 5000);
  CHECK(allocations == 0);
  CHECK(locks == 0);
}

TEST_CASE(
    "a shared completion queue neither allocates nor locks after one of its Jetties was "
    "destroyed") {
  Side a = Side::open("udp:");
  Side b = Side::open("udp:");
  const Imported to_b = a.device.import(b.line()).value();
  Jfc jfc = a.device.jfc(256).value();
  Jetty stays = a.device.jetty({.berths = 64, .completions = &jfc}).value();
  exchange_on_two_threads(stays, jfc, to_b, 100);
  const auto bytes = bytes_like(100, 1);
  {
    Jetty goes = a.device.jetty({.berths = 64, .completions = &jfc}).value();
    REQUIRE(goes.post(write(bytes, to_b.segment)) == 1);
  }
  std::array<Completion, 1> out;
  allocations = locks = 0;
  armed = true;
  while (jfc.poll(out) == 0) {
  }
  armed = false;
  CHECK(allocations == 0);
  CHECK(locks == 0);
  CHECK(exchange_on_two_threads(stays, jfc, to_b, 5000) == 5000);
  CHECK(allocations == 0);
  CHECK(locks == 0);
}

TEST_CASE("Jetties that share a receive queue neither allocate nor lock") {
  Side a = Side::open("udp:", {.threads = Threads::inlined});
  Side b = Side::open("udp:", {.threads = Threads::inlined});
  Jfr jfr = b.device.jfr({.receives = 8}).value();
  std::vector<Jetty> jetties;
  std::vector<RemoteJetty> targets;
  for (int i = 0; i < 4; ++i) {
    jetties.push_back(b.device.jetty({.berths = 1, .receives_from = &jfr}).value());
    targets.push_back(a.device.import(jetties.back().descriptor()).value().jetty);
  }
  std::array<Completion, 8> out;
  const std::span<std::byte> bytes = a.segment.bytes().first(20'000);
  const auto messages = [&](uint64_t rounds) {
    uint64_t done = 0;
    for (uint64_t i = 0; i < rounds; ++i) {
      uint64_t waiting = jfr.receive(b.segment.bytes().first(bytes.size()), i);
      waiting += a.jetty.post(send(bytes, targets[i % targets.size()]));
      if (waiting != 2) return done;
      while (waiting > 0) {
        const size_t count = a.jetty.poll(out) + jfr.poll(std::span(out).subspan(4));
        done += count;
        waiting -= count;
      }
    }
    return done;
  };
  messages(5);
  allocations = locks = 0;
  armed = true;
  const uint64_t done = messages(100);
  armed = false;
  CHECK(done == 200);
  CHECK(allocations == 0);
  CHECK(locks == 0);
}

TEST_CASE("neither sleeping at a descriptor nor waking the thread that sleeps there allocates") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side a = Side::open(medium.text());
    Side b = Side::open(medium.text());
    const Imported to_b = a.device.import(b.line()).value();
    pollfd one{b.jetty.fd().value(), POLLIN, 0};
    std::array<Completion, 8> out;
    const std::span<std::byte> bytes = a.segment.bytes().first(5000);
    const auto messages = [&](uint64_t rounds) {
      uint64_t woken = 0;
      for (uint64_t i = 0; i < rounds; ++i) {
        const bool sleeps = b.jetty.arm();
        if (a.jetty.post(write(bytes, to_b.segment).to(to_b.jetty).immediate(i)) != 1) return woken;
        if (sleeps) woken += poll(&one, 1, 5000) == 1;
        while (b.jetty.poll(out) == 0) {
        }
        while (a.jetty.poll(out) == 0) {
        }
      }
      return woken;
    };
    messages(20);
    allocations = locks = 0;
    armed = true;
    const uint64_t woken = messages(100);
    armed = false;
    INFO(driver);
    CHECK(woken > 0);
    CHECK(allocations == 0);
    CHECK(locks == 0);
  }
}

TEST_CASE("a device that is observed and has a log neither allocates nor locks") {
  const DeviceOptions options{.threads = Threads::inlined,
                              .log = {.call = [](const LogLine&) {}, .level = LogLevel::error}};
  const auto reports = [] {
    uint64_t sum = 0;
    const Observed all = observe_devices().value();
    for (const ObservedDevice& device : all.devices) {
      if (device.pid == static_cast<uint64_t>(getpid())) sum += device.reports;
    }
    return sum;
  };
  Side a = Side::open("udp:", options);
  Side b = Side::open("udp:", options);
  const Imported to_b = a.device.import(b.line()).value();
  const Imported to_a = b.device.import(a.line()).value();
  exchange(a, b, to_b, to_a, 5);
  const uint64_t before = reports();
  allocations = locks = 0;
  armed = true;
  const auto until = std::chrono::steady_clock::now() + 300ms;
  while (std::chrono::steady_clock::now() < until) exchange(a, b, to_b, to_a, 1);
  armed = false;
  CHECK(reports() > before);
  CHECK(allocations == 0);
  CHECK(locks == 0);
}

TEST_CASE("an engine does not read files each time that an unknown peer asks for a name") {
  Side asked = Side::open("udp:127.0.0.226");
  REQUIRE(asked.device.endpoint().port == ub_port);
  asked.device.publish("something", asked.segment).value();  // so that there is a directory
  std::atomic<uint64_t> found{0};
  const auto ask = [&](uint64_t questions) {
    Side stranger = Side::open(
        "udp:", {.observable = false});  // otherwise its open looks for old pages of counters
    for (uint64_t i = 0; i < questions; ++i) {
      found += stranger.device.import("urma://127.0.0.226:4792/nothing", 1ms).ok();
    }
  };
  ask(10);
  looks = 0;
  armed = true;
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> strangers;
  for (int i = 0; i < 8; ++i) strangers.emplace_back(ask, 100);
  for (std::thread& stranger : strangers) stranger.join();
  armed = false;
  const auto took = std::chrono::steady_clock::now() - begun;
  CHECK(found == 0);
  CHECK(looks > 0);
  // The engine looks at most once in 10 ms. A slow machine does not break the bound: it takes
  // longer, and the bound grows with the time that has passed.
  CHECK(looks <= static_cast<uint64_t>(took / 10ms) + 2);
}

TEST_CASE("the traps of this test catch an allocation and a lock") {
  armed = true;
  void* volatile memory = malloc(10);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  armed = false;
  free(memory);
  CHECK(allocations > 0);
  CHECK(locks > 0);
}

}  // namespace
}  // namespace urma::test
