// SPDX-License-Identifier: Apache-2.0
// Targets at which a write with an immediate takes a posted buffer (immediates_take_buffers).
#include <deque>
#include <vector>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr size_t room = 64;
constexpr size_t slots = 8;

// A target with a Jfr of its own, and a peer that sends to it.
struct Taking {
  explicit Taking(std::string_view driver, Duration receiver_timeout = Duration::max())
      : both(driver),
        jfr(both.owner.device.jfr({.receives = slots, .immediates_take_buffers = true}).value()),
        target(both.owner.device.jetty({.berths = 1, .receives_from = &jfr}).value()),
        sender(both.user.device.jetty({.berths = slots, .receiver_timeout = receiver_timeout})
                   .value()),
        there(both.import(both.owner.segment)),
        to(both.user.device.import(target.descriptor()).value().jetty) {}

  // Posts the buffer with this number, which is also its tag.
  void receive(uint64_t number) {
    std::fill_n(buffer(number).begin(), room, std::byte{0xee});
    REQUIRE(jfr.receive(buffer(number), number));
  }
  std::span<std::byte> buffer(uint64_t number) {
    return std::span(memory).subspan(number % slots * room, room);
  }
  // Posts a work, and returns what arrives.
  Completion arrival(const Work& work) {
    CHECK(run_one(sender, work).ok());
    const auto arrived = jfr.wait(5s);
    REQUIRE(arrived.size() == 1);
    return arrived[0];
  }

  UserAndOwner both;
  Jfr jfr;
  Jetty target;
  Jetty sender;
  RemoteSegment there;
  RemoteJetty to;
  std::vector<std::byte> memory = std::vector<std::byte>(slots * room);
};

TEST_CASE("a write with an immediate takes the oldest buffer, and stores nothing in it") {
  for (const std::string_view driver : media) {
    for (const size_t bytes : {size_t{0}, size_t{8}, size_t{300'000}}) {
      INFO(driver << " " << bytes);
      Taking on(driver);
      const auto data = bytes_like(bytes);
      for (uint64_t i = 1; i <= slots; ++i) on.receive(i);
      CHECK(on.jfr.vacant_receives() == 0);
      for (uint64_t i = 1; i <= slots; ++i) {
        const Completion arrived = on.arrival(write(data, on.there).to(on.to).immediate(100 + i));
        CHECK(arrived.tag == i);
        CHECK(arrived.with_immediate);
        CHECK(arrived.written);
        CHECK(arrived.immediate == 100 + i);
        CHECK(arrived.bytes == bytes);
        CHECK(arrived.jetty == on.target.id());
        CHECK(all_are(on.buffer(i), std::byte{0xee}));
        CHECK(on.jfr.vacant_receives() == i);
      }
      on.both.in_order();
      CHECK(same(data, on.both.owner.segment.bytes().first(bytes)));
    }
  }
}

TEST_CASE("messages and immediates take the buffers in the order in which these were posted") {
  for (const std::string_view driver : {"cxl:", "udp:", "fault(loss=10%,seed=5):udp:"}) {
    INFO(driver);
    Taking on(driver);
    const auto data = bytes_like(8);
    for (uint64_t i = 1; i <= 100; ++i) {
      on.receive(i);
      const bool message = i % 3 == 0;
      const Completion arrived =
          on.arrival(message ? send(data, on.to) : write(data, on.there).to(on.to).immediate(i));
      CHECK(arrived.tag == i);
      CHECK(arrived.with_immediate != message);
      CHECK(arrived.written != message);
      CHECK(same(data, on.buffer(i).first(8)) == message);
    }
  }
}

TEST_CASE("a write with an immediate waits while no buffer is posted, or ends after its limit") {
  for (const std::string_view driver : media) {
    INFO(driver);
    {
      Taking on(driver, 20ms);
      const auto data = bytes_like(8);
      const Work work = write(data, on.there).to(on.to).immediate(1);
      CHECK(run_one(on.sender, work).status == Status::receiver_not_ready);
    }
    Taking on(driver);
    const auto data = bytes_like(8);
    REQUIRE(on.sender.post(write(data, on.there).to(on.to).immediate(1)) == 1);
    CHECK(on.sender.wait(30ms).empty());
    on.receive(1);
    const auto done = on.sender.wait(5s);
    REQUIRE(done.size() == 1);
    CHECK(done[0].ok());
    const auto arrived = on.jfr.wait(5s);
    REQUIRE(arrived.size() == 1);
    CHECK(arrived[0].tag == 1);
  }
}

TEST_CASE("a refused write with an immediate leaves the buffer to the next one") {
  for (const std::string_view driver : media) {
    INFO(driver);
    Taking on(driver);
    on.receive(1);
    RemoteSegment wrong = on.there;
    wrong.token = TokenValue(number(wrong.token) ^ 1);
    const auto data = bytes_like(100'000);
    CHECK(run_one(on.sender, write(data, wrong).to(on.to).immediate(1)).status ==
          Status::remote_access);
    CHECK(on.arrival(write(data, on.there).to(on.to).immediate(2)).tag == 1);
  }
}

TEST_CASE("a flushed Jetty with its own receives returns the buffers that no immediate took") {
  for (const std::string_view driver : media) {
    INFO(driver);
    UserAndOwner both(driver);
    Jetty target =
        both.owner.device.jetty({.receives = 4, .immediates_take_buffers = true}).value();
    std::vector<std::byte> memory(4 * room);
    for (uint64_t i = 0; i < 4; ++i) {
      REQUIRE(target.receive(std::span(memory).subspan(i * room, room), i));
    }
    const RemoteJetty to = both.user.device.import(target.descriptor()).value().jetty;
    const RemoteSegment there = both.import(both.owner.segment);
    CHECK(both.run(write(bytes_like(8), there).to(to).immediate(1)) == Status::ok);
    REQUIRE(target.flush().ok());
    const auto ended = collect(target, 4);
    CHECK(ended[0].ok());
    for (uint64_t i = 0; i < 4; ++i) {
      CHECK(ended[i].tag == i);
      if (i > 0) CHECK(ended[i].status == Status::flushed);
    }
  }
}

}  // namespace
}  // namespace urma::test
