// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfc.h"

#include <cerrno>
#include <memory>
#include <thread>

#include "jetty/queues.h"
#include "tests/catch.h"

namespace urma::jetty {
namespace {

// An entry is reused when its reservation has passed from a destroyed Jetty to a new one, through
// the thread that polled it.
TEST_CASE("entries of destroyed Jetties are reused only after they were polled") {
  constexpr uint16_t entries = 8;
  constexpr uint64_t jetties = 2000;
  Jfc jfc(entries);
  std::thread engine([&] {
    for (uint64_t jetty = 0; jetty < jetties; ++jetty) {
      while (!jfc.reserve(entries)) std::this_thread::yield();
      auto queues = std::make_shared<Queues>(entries, uint16_t{0}, jfc);
      for (uint16_t lease = 0; lease < entries; ++lease) {
        queues->jfs().chain(lease, Queues::none);
        jfc.push({.tag = jetty * entries + lease}, queues.get(), lease);
      }
      jfc.retire(std::move(queues));
    }
  });
  uint64_t expected = 0;
  uint64_t wrong = 0;
  std::array<Completion, 3> out;
  while (expected < jetties * entries) {
    const size_t count = jfc.poll(out);
    for (size_t i = 0; i < count; ++i) wrong += out[i].tag != expected++;
    if (count == 0) std::this_thread::yield();
  }
  engine.join();
  CHECK(wrong == 0);
  jfc.poll(out);
  CHECK(jfc.reserved() == 0);
}

TEST_CASE("a JFC that has neither a descriptor nor an event channel is rung without effect") {
  const Jfc jfc(4);
  errno = 0;
  jfc.ring();
  CHECK(errno == 0);
  CHECK(jfc.awake_here());
}

TEST_CASE("the thread that polls returns the permits for immediates") {
  constexpr uint16_t permits = 4;
  constexpr uint32_t immediates = 20'000;
  Jfc jfc(2 * permits);
  Queues queues(0, permits, jfc);
  std::thread engine([&] {
    for (uint32_t raised = 0; raised < immediates;) {
      if (raised - queues.jfr().immediates_polled() == permits) {
        std::this_thread::yield();
        continue;
      }
      jfc.push({.operation = Operation::receive, .immediate = raised++}, &queues, Queues::none);
    }
  });
  uint64_t wrong = 0;
  std::array<Completion, 3> out;
  for (uint64_t expected = 0; expected < immediates;) {
    const size_t count = jfc.poll(out);
    for (size_t i = 0; i < count; ++i) wrong += out[i].immediate != expected++;
    if (count == 0) std::this_thread::yield();
  }
  engine.join();
  CHECK(wrong == 0);
  CHECK(queues.jfr().immediates_polled() == immediates);
}

}  // namespace
}  // namespace urma::jetty
