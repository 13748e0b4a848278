// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Two devices over a window, run only by the threads that poll them.
struct PolledPair {
  explicit PolledPair(Duration operation_timeout = 2s)
      : options{.threads = Threads::inlined, .operation_timeout = operation_timeout} {}

  Medium medium{"cxl:"};
  DeviceOptions options;
  Side left = Side::open(medium.text(), options);
  Side right = Side::open(medium.text(), options);
  Imported to_right = left.device.import(right.line()).value();
  Imported to_left = right.device.import(left.line()).value();
  std::array<std::byte, 64> left_buffer{};
  std::array<std::byte, 64> right_buffer{};

  // Sends a message from the left device to the right one.
  void ask() {
    const auto question = bytes_like(8, 1);
    REQUIRE(right.jetty.receive(right_buffer, 1));
    REQUIRE(left.jetty.post(send(question, to_right.jetty)) == 1);
    Completion completion;
    for (int looks = 0; looks < 1'000'000; ++looks) {
      REQUIRE(left.jetty.poll({&completion, 0}) == 0);
      if (right.jetty.poll({&completion, 1}) == 1) break;
    }
    REQUIRE(completion.operation == Operation::receive);
    REQUIRE(completion.ok());
  }
  // Returns whether the left device receives the reply. The right device is polled only for the
  // `first` one, because it makes the channel to its peer in a pass; afterwards no thread polls it.
  bool left_gets(Completion& arrival, bool first) {
    for (int looks = 0; looks < 10'000; ++looks) {
      if (first) (void)right.jetty.poll({&arrival, 0});
      if (left.jetty.poll({&arrival, 1}) == 1 && arrival.operation == Operation::receive)
        return true;
    }
    return false;
  }
};

TEST_CASE("a small reply has left when post returns, and completes once when the sender polls") {
  PolledPair pair;
  const auto reply = bytes_like(8, 2);
  for (int round = 0; round < 100; ++round) {
    const bool message = round % 2 == 0;
    INFO("round " << round << (message ? ": a message" : ": an immediate"));
    pair.ask();
    if (message) REQUIRE(pair.left.jetty.receive(pair.left_buffer, 2));
    Work work = message ? send(reply, pair.to_left.jetty)
                        : write(reply, pair.to_left.segment).to(pair.to_left.jetty).immediate(7);
    REQUIRE(pair.right.jetty.post(work.tag(9)) == 1);
    Completion arrival;
    REQUIRE(pair.left_gets(arrival, round == 0));
    CHECK(arrival.ok());
    CHECK(arrival.immediate == (message ? 0 : 7));
    const std::byte* const placed =
        message ? pair.left_buffer.data() : pair.left.segment.bytes().data();
    CHECK(std::equal(reply.begin(), reply.end(), placed));
    uint32_t ended = 0;
    for (int looks = 0; looks < 1000; ++looks) {
      Completion completion;
      (void)pair.left.jetty.poll({&completion, 1});  // the completion of its own send
      if (pair.right.jetty.poll({&completion, 1}) == 0) continue;
      CHECK(completion.ok());
      CHECK(completion.tag == 9);
      ++ended;
    }
    CHECK(ended == 1);
  }
}

// 100 ms count of a time in which no thread runs a device, also after a post that ran no pass.
TEST_CASE("a reply that has left is not judged by the time in which no thread polled") {
  PolledPair pair(1s);
  const auto reply = bytes_like(8, 2);
  pair.ask();
  REQUIRE(pair.left.jetty.receive(pair.left_buffer, 2));
  REQUIRE(pair.right.jetty.post(send(reply, pair.to_left.jetty).tag(9)) == 1);
  Completion completion;
  Completion other;
  // Makes the channel.
  REQUIRE(pair.left_gets(completion, true));
  while (pair.right.jetty.poll({&completion, 1}) == 0) (void)pair.left.jetty.poll({&other, 1});
  REQUIRE(completion.ok());

  pair.ask();
  REQUIRE(pair.left.jetty.receive(pair.left_buffer, 2));
  REQUIRE(pair.right.jetty.post(send(reply, pair.to_left.jetty).tag(10)) == 1);
  std::this_thread::sleep_for(1300ms);
  // Each look counts for 100 ms at most, and the limit is 1 s: on a busy machine, looks that take
  // longer than this would end the work, and rightly.
  const auto limit = std::chrono::steady_clock::now() + 500ms;
  for (int looks = 0; looks < 1000 && std::chrono::steady_clock::now() < limit; ++looks) {
    const size_t come = pair.right.jetty.poll({&completion, 1});
    CAPTURE(completion.status);
    REQUIRE(come == 0);
  }
  bool ended = false;
  for (int looks = 0; looks < 100'000 && !ended; ++looks) {
    (void)pair.left.jetty.poll({&other, 1});
    ended = pair.right.jetty.poll({&completion, 1}) == 1;
  }
  REQUIRE(ended);
  CHECK(completion.ok());
}

// The posting thread takes the engine token between two polls of the other thread, or finds that
// the other thread has it.
TEST_CASE("one thread sends replies while another thread polls for the messages") {
  constexpr uint64_t rounds = 1000;
  for (const Threads mode : {Threads::inlined, Threads::automatic}) {
    const Medium medium("cxl:");
    Side asker = Side::open(medium.text(), {.threads = mode});
    Side other = Side::open(medium.text(), {.threads = mode});
    const Imported to_other = asker.device.import(other.line()).value();
    const Imported to_asker = other.device.import(asker.line()).value();
    const auto bytes = bytes_like(8, 3);
    std::atomic<uint64_t> asked{0};
    std::atomic<uint64_t> replies_ended{0};
    std::atomic<bool> stop{false};
    std::thread poller([&] {
      std::array<Completion, 16> out;
      while (!stop) {
        const size_t count = other.jetty.poll(out);
        for (const Completion& completion : std::span(out).first(count)) {
          (completion.operation == Operation::receive ? asked : replies_ended) += completion.ok();
        }
        if (count == 0) std::this_thread::yield();
      }
    });
    std::thread poster([&] {
      for (uint64_t replied = 0; replied < rounds && !stop;) {
        if (replied == asked) {
          std::this_thread::yield();
          continue;
        }
        replied +=
            other.jetty.post(write(bytes, to_asker.segment).to(to_asker.jetty).immediate(replied));
      }
    });
    uint64_t asks_ended = 0;
    uint64_t answered = 0;
    for (uint64_t sent = 0; answered < rounds;) {
      if (sent == answered) {
        sent += asker.jetty.post(write(bytes, to_other.segment).to(to_other.jetty).immediate(sent));
      }
      const auto completions = asker.jetty.wait(patience);
      if (completions.empty()) break;
      for (const Completion& completion : completions) {
        if (!completion.ok()) continue;
        const bool reply = completion.operation == Operation::receive;
        if (reply) CHECK(completion.immediate == answered);
        (reply ? answered : asks_ended) += 1;
      }
    }
    asks_ended += collect(asker.jetty, rounds - asks_ended).size();
    for (int tries = 0; tries < 5000 && replies_ended < rounds; ++tries) {
      CHECK(asker.jetty.wait(1ms).empty());
    }
    stop = true;
    poller.join();
    poster.join();
    CHECK(answered == rounds);
    CHECK(asks_ended == rounds);
    CHECK(replies_ended == rounds);
  }
}

// A packet that is sent immediately must not arrive before those that set up its channel.
TEST_CASE("works that all sides post before there are channels are executed once each") {
  for (const size_t bytes : {size_t{8}, size_t{8192}}) {
    for (const size_t others : {size_t{1}, size_t{24}}) {
      INFO(bytes << " bytes, " << others << " others");
      const Medium medium("cxl:");
      const DeviceOptions inlined{.threads = Threads::inlined};
      Side one = Side::open(medium.text(), inlined);
      std::vector<Side> sides;
      for (size_t i = 0; i < others; ++i) sides.push_back(Side::open(medium.text(), inlined));
      const auto data = bytes_like(bytes, 1);
      std::vector<Imported> to_others;
      for (Side& side : sides) {
        to_others.push_back(one.device.import(side.line()).value());
        const Imported there = side.device.import(one.line()).value();
        REQUIRE(side.jetty.post(write(data, there.segment)) == 1);
        REQUIRE(one.jetty.post(write(data, to_others.back().segment)) == 1);
      }
      size_t ended = 0;
      Completion completion;
      for (int looks = 0; looks < 1'000'000 && ended < 2 * others; ++looks) {
        ended += one.jetty.poll({&completion, 1}) == 1 && completion.ok();
        for (Side& side : sides) ended += side.jetty.poll({&completion, 1}) == 1 && completion.ok();
      }
      CHECK(ended == 2 * others);
      const Statistics seen = one.device.stats().value();
      CHECK(seen.dropped_unknown_channel == 0);
      CHECK(seen.retries == 0);
      CHECK(seen.channels_made == others);
    }
  }
}

TEST_CASE("unregister waits for works that were posted just before and that no pass has seen") {
  PolledPair pair;
  constexpr size_t works = 40;
  constexpr size_t bytes = 16 * 1024;
  pair.ask();
  Segment own = pair.left.device.allocate(works * bytes).value();
  for (size_t i = 0; i < works; ++i) {
    const auto part = own.bytes().subspan(i * bytes, bytes);
    REQUIRE(pair.left.jetty.post(write(part, pair.to_right.segment)) == 1);
  }
  REQUIRE(own.unregister().ok());
  // All works have ended, so none of them reads the memory any longer.
  std::array<Completion, works + 1> out;
  CHECK(pair.left.jetty.poll(out) >= works);
}

}  // namespace
}  // namespace urma::test
