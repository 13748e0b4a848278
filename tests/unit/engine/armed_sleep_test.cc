// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/clock.h"
#include "engine/service_thread.h"
#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using namespace engine;

// A port that signals an arrival only while it is armed. The frames contain no packet: what matters
// is when they are received.
class ArmedPort final : public IdlePort {
 public:
  ArmedPort() {
    facts_.arms = true;
    facts_.eid.bytes[15] = std::byte{1};
    facts_.self = {facts_.eid, 1};
  }
  ~ArmedPort() override { close(descriptor_); }

  size_t receive(std::span<RxFrame> frames, Time) override {
    steps += armed_ ? 'r' : '.';
    ++receives;
    const uint64_t at = taken_.load();
    if (frames.empty() || at == sent_.load()) return 0;
    taken_.store(at + 1);
    frames[0] = {.data = &byte_, .bytes = 1, .from = &facts_.self};
    return 1;
  }
  std::span<const int> descriptors() const override { return {&descriptor_, 1}; }
  void arm() override {
    steps += 'a';
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
    armed_.store(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Every frame that came before `arm`, and so gave no signal, was received before the sleep.
  void disarm() override {
    steps += 'd';
    const uint64_t silent = silent_.load();  // later ones may come after this call
    armed_.store(false);
    if (taken_.load() < silent) ++missed;
  }

  // Another thread: a frame arrives.
  void arrive() {
    const uint64_t number = sent_.fetch_add(1) + 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!armed_.load()) return silent_.store(number);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
  }
  uint64_t received() const { return taken_.load(); }

  std::string steps;  // what the engine has done: r, a receive while armed; ., another one
  uint64_t missed = 0;
  std::atomic<uint64_t> receives{0};

 private:
  const int descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const std::byte byte_{};
  std::atomic<bool> armed_{false};
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> silent_{0};  // the last frame that gave no signal
  std::atomic<uint64_t> taken_{0};
};

struct ArmedParts {
  explicit ArmedParts(Threads threads) : keeper(threads, waker) { REQUIRE(waker.start()); }

  NotDriven not_driven;
  std::unique_ptr<ArmedPort> owned = std::make_unique<ArmedPort>();
  ArmedPort& port = *owned;
  Engine engine{std::move(owned), idle_settings(), std::make_unique<SeededEntropy>(1)};
  Waker waker{engine.port(), nullptr, not_driven};
  Keeper keeper;
  Passes passes{engine, waker, nullptr, true};
  DescriptorSleep descriptors{engine, passes, waker, keeper};
  ServiceThread service{passes, waker, keeper, descriptors};
};

TEST_CASE("a port is armed, looked at once more, slept at, and disarmed by the next pass") {
  ArmedParts parts(Threads::served);
  CHECK(parts.waker.port_is_polled());
  while (parts.passes.try_pass(nullptr) != Passes::Ran::idle) {
  }
  parts.port.steps.clear();
  REQUIRE(parts.descriptors.occupy());
  parts.descriptors.sleep_until_alarm(nullptr, read_clock() + 1ms);
  CHECK(parts.port.steps == "ar");
  // A second sleep without a pass between them need not disarm it.
  parts.descriptors.sleep_until_alarm(nullptr, read_clock() + 1ms);
  CHECK(parts.port.steps == "arar");
  parts.descriptors.leave();
  parts.passes.try_pass(nullptr);
  parts.passes.try_pass(nullptr);
  CHECK(parts.port.steps == "arard..");
}

TEST_CASE("no frame is missed that arrives while the service thread goes to sleep") {
  ArmedParts parts(Threads::served);
  REQUIRE(parts.service.start());
  for (uint64_t round = 1; round <= 2000; ++round) {
    // The thread is asleep, about to be, or still polling.
    const Time until = read_clock() + std::chrono::microseconds(round % 8 == 0 ? 1100 : round % 50);
    while (read_clock() < until) std::this_thread::yield();
    parts.port.arrive();
    while (parts.port.received() < round) std::this_thread::yield();
  }
  parts.service.stop();
  CHECK(parts.port.missed == 0);
  CHECK(parts.port.steps.find('a') != std::string::npos);
}

TEST_CASE("an idle service thread wakes a few times in a second, not ten thousand times") {
  ArmedParts parts(Threads::served);
  REQUIRE(parts.service.start());
  uint64_t receives = 0;
  for (int i = 0; i < 50; ++i) {  // it polls before its first sleep, on a busy machine for long
    const uint64_t before = parts.port.receives;
    std::this_thread::sleep_for(100ms);
    receives = parts.port.receives - before;
    if (receives < 100) break;
  }
  parts.service.stop();
  CHECK(receives < 100);
}

}  // namespace
}  // namespace urma::test
