// SPDX-License-Identifier: Apache-2.0
// Unreliable messages, which are not acknowledged, over each medium.

#include <time.h>

#include <algorithm>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr JettyOptions unreliable = {.berths = 64, .receives = 0, .mode = ServiceMode::unreliable};

TEST_CASE("datagrams of all sizes arrive over each medium, without a channel") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text(), {}, unreliable);
    const RemoteJetty target = user.device.import(owner.jetty.descriptor()).value().jetty;
    const uint64_t channels = owner.device.stats().value().channels_made;
    std::vector<std::byte> buffer(user.device.datagram_bytes());
    CHECK(buffer.size() >= 1024);
    CHECK(buffer.size() <= 8192);
    for (size_t size = 0; size <= buffer.size(); size += 61) {
      REQUIRE(owner.jetty.receive(buffer, size));
      const auto data = bytes_like(size, static_cast<unsigned>(size));
      REQUIRE(run_one(user.jetty, send(data, target)).ok());
      const auto come = collect(owner.jetty, 1);
      REQUIRE(come.size() == 1);
      CHECK(come[0].bytes == size);
      CHECK(std::ranges::equal(std::span(buffer).first(size), data));
    }
    CHECK(owner.device.stats().value().channels_made == channels);
    CHECK(run_one(user.jetty, send(bytes_like(buffer.size() + 1, 1), target)).status ==
          Status::bad_work);
  }
}

Duration processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

TEST_CASE("a thread that waits after a datagram sleeps") {
  for (const std::string_view driver : media) {
    for (const Threads threads : {Threads::inlined, Threads::automatic}) {
      const Medium medium(driver);
      Side owner = Side::open(medium.text(), {.threads = threads, .observable = false});
      Side user = Side::open(medium.text(), {}, unreliable);
      const RemoteJetty target = user.device.import(owner.jetty.descriptor()).value().jetty;
      std::array<std::byte, 8> buffer{};
      REQUIRE(owner.jetty.receive(buffer, 1));
      REQUIRE(run_one(user.jetty, send(bytes_like(8, 1), target)).ok());
      Completion come;
      while (owner.jetty.poll({&come, 1}) == 0) {
      }
      REQUIRE(come.ok());
      const Duration before = processor_time();
      CHECK(owner.jetty.wait(400ms).empty());
      INFO(driver);
      CHECK(processor_time() - before < 200ms);
    }
  }
}

TEST_CASE("datagrams that a device sends to itself arrive") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side self = Side::open(medium.text());
    Jetty sender = self.device.jetty(unreliable).value();
    std::vector<std::byte> buffer(100);
    REQUIRE(self.jetty.receive(buffer));
    const auto data = bytes_like(100, 3);
    REQUIRE(run_one(sender, send(data, self.jetty.local())).ok());
    REQUIRE(collect(self.jetty, 1).at(0).bytes == 100);
    CHECK(buffer == data);
  }
}

TEST_CASE("datagrams: a stopped receiver does not delay the sender") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    // No thread runs this device.
    Side owner = Side::open(medium.text(), {.threads = Threads::inlined});
    Side user = Side::open(medium.text(), {}, unreliable);
    const RemoteJetty target = user.device.import(owner.jetty.descriptor()).value().jetty;
    const auto data = bytes_like(1000, 3);
    for (int i = 0; i < 5000; ++i) {
      REQUIRE(run_one(user.jetty, send(data, target)).ok());
    }
    CHECK(user.device.stats().value().datagrams_sent == 5000);
  }
}

}  // namespace
}  // namespace urma::test
