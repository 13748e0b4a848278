// SPDX-License-Identifier: Apache-2.0
// poll_and_arm: the step before a sleep at a descriptor, of which no completion may be lost.

#include <deque>
#include <stdexcept>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr std::span<const std::byte> nothing;

// A queue at which completions arrive at chosen moments: `late` has one list for each call of
// `arm`, whose completions arrive after the last poll and before that call.
struct Scripted {
  std::deque<Completion> waiting;
  std::deque<std::deque<Completion>> late;
  bool has_descriptor = true;
  bool armed = false;
  int arms = 0;

  size_t poll(std::span<Completion> out) {
    if (out.empty() || waiting.empty()) return 0;
    out[0] = waiting.front();
    waiting.pop_front();
    return 1;
  }
  bool arm(Wake) {
    ++arms;
    if (!late.empty()) {
      waiting = late.front();
      late.pop_front();
    }
    return armed = waiting.empty() && has_descriptor;
  }
};

Completion tagged(uint64_t tag, Status status = Status::ok) {
  return {.status = status, .tag = tag, .from = {}};
}

TEST_CASE("completions that arrive before arm are handled before the thread sleeps") {
  Scripted queue;
  queue.waiting = {tagged(1)};
  queue.late = {{tagged(2), tagged(3)}, {tagged(4)}};
  std::vector<uint64_t> tags;
  const auto note = [&](const Completion& done) { tags.push_back(done.tag); };
  CHECK(poll_and_arm(queue, note) == Armed::yes);
  CHECK(tags == std::vector<uint64_t>{1, 2, 3, 4});
  CHECK(queue.arms == 3);
  CHECK(queue.armed);
}

TEST_CASE("poll_and_arm handles no more completions than it is told, and then does not arm") {
  Scripted queue;
  queue.waiting = {tagged(1), tagged(2), tagged(3)};
  size_t handled = 0;
  const auto count = [&](const Completion&) { ++handled; };
  CHECK(poll_and_arm(queue, count, {.most = 2}) == Armed::not_empty);
  CHECK(handled == 2);
  CHECK(queue.arms == 0);
  CHECK(poll_and_arm(queue, count, {.most = 2}) == Armed::yes);
  CHECK(handled == 3);
}

TEST_CASE("a handler that throws loses only the completion that it was given") {
  Scripted queue;
  queue.waiting = {tagged(1), tagged(2)};
  std::vector<uint64_t> tags;
  const auto fail_once = [&](const Completion& done) {
    tags.push_back(done.tag);
    if (done.tag == 1) throw std::runtime_error("handler");
  };
  CHECK_THROWS(poll_and_arm(queue, fail_once) == Armed::yes);
  CHECK(queue.arms == 0);
  CHECK(poll_and_arm(queue, fail_once) == Armed::yes);
  CHECK(tags == std::vector<uint64_t>{1, 2});
}

TEST_CASE("poll_and_arm says that a queue has no descriptor, or that its device is closed") {
  const auto ignore = [](const Completion&) {};
  for (const std::string_view driver : media) {
    Medium medium(driver);
    Side side = Side::open(medium.text());
    Side other = Side::open(medium.text());
    CHECK(poll_and_arm(side.jetty, ignore) == Armed::no_descriptor);
    const int descriptor = side.jetty.fd().value();
    CHECK(poll_and_arm(side.jetty, ignore) == Armed::yes);
    CHECK_FALSE(readable(descriptor, 0));

    const auto target = other.device.import(side.jetty.descriptor()).value().jetty;
    std::array<std::byte, 8> buffer;
    REQUIRE(side.jetty.receive(buffer));
    REQUIRE(run_one(other.jetty, send(nothing, target).immediate(7)).ok());
    CHECK(readable(descriptor));
    uint64_t immediate = 0;
    while (immediate == 0) {
      const auto note = [&](const Completion& one) { immediate = one.immediate; };
      CHECK(poll_and_arm(side.jetty, note) == Armed::yes);
    }
    CHECK(immediate == 7);

    side.device.close();
    CHECK(readable(descriptor));
    Status last = Status::ok;
    const auto note = [&](const Completion& one) { last = one.status; };
    CHECK(poll_and_arm(side.jetty, note) == Armed::ended);
    CHECK(last == Status::closed);
  }
  std::optional<Jetty> moved(Side::open("udp:").jetty);
  const Jetty to = std::move(*moved);
  CHECK(poll_and_arm(*moved, ignore) == Armed::ended);
}

// Sends messages to each target in turn, with pauses of many lengths.
void send_all(Device& device, const std::vector<RemoteJetty>& targets, uint64_t messages) {
  Jetty jetty = device.jetty().value();
  for (uint64_t i = 0; i < messages; ++i) {
    if (jetty.post(send(nothing, targets[i % targets.size()]).immediate(i)) != 1) return;
    if (collect(jetty, 1).size() != 1) return;
    if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 300));
  }
}

TEST_CASE("no wake-up is lost between poll_and_arm and the descriptor") {
  constexpr uint64_t messages = 3'000;
  for (const std::string_view driver : media) {
    Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text());
    std::array<std::byte, 8> buffer;
    while (owner.jetty.receive(buffer)) {
    }
    const int descriptor = owner.jetty.fd().value();
    const auto target = user.device.import(owner.jetty.descriptor()).value().jetty;
    std::thread sender([&] { send_all(user.device, {target}, messages); });
    uint64_t arrived = 0;
    const auto take = [&](const Completion& one) {
      arrived += one.ok() ? 1 : 0;
      if (!owner.jetty.receive(buffer)) throw std::runtime_error("no receive slot is vacant");
    };
    // A lost wake-up makes `readable` return false after 10 s.
    while (poll_and_arm(owner.jetty, take) == Armed::yes && arrived < messages &&
           readable(descriptor)) {
    }
    sender.join();
    CHECK(arrived == messages);
  }
}

TEST_CASE("no wake-up is lost at a channel whose queues are polled and armed in turn") {
  constexpr uint64_t messages = 2'000;
  constexpr size_t queues = 3;
  for (const std::string_view driver : media) {
    Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text());
    Jfce events = owner.device.jfce().value();
    std::array<std::byte, 8> buffer;
    std::vector<Jetty> jetties;
    std::vector<RemoteJetty> targets;
    uint64_t arrived = 0;
    const auto serve = [&](Jetty& jetty) {
      const auto take = [&](const Completion& one) {
        arrived += one.ok() ? 1 : 0;
        if (!jetty.receive(buffer)) throw std::runtime_error("no receive slot is vacant");
      };
      Armed armed = Armed::not_empty;
      while (armed == Armed::not_empty) armed = poll_and_arm(jetty, take, {.most = 4});
      REQUIRE(armed == Armed::yes);
    };
    for (size_t i = 0; i < queues; ++i) {
      jetties.push_back(owner.device.jetty({.berths = 0, .receives = 64}).value());
      while (jetties[i].receive(buffer)) {
      }
      targets.push_back(user.device.import(jetties[i].descriptor()).value().jetty);
      events.attach(jetties[i], i).value();
      serve(jetties[i]);
    }
    std::thread sender([&] { send_all(user.device, targets, messages); });
    while (arrived < messages && readable(events.fd())) {
      for (const uint64_t tag : events.wait(0s)) serve(jetties[tag]);
    }
    sender.join();
    CHECK(arrived == messages);
  }
}

}  // namespace
}  // namespace urma::test
