// SPDX-License-Identifier: Apache-2.0
// The contract under each kind of bad network, in each mode: each work completes once with a true
// status, and its bytes are in place. With URMA_LONG in full size: 50 seeds, 10 000 works.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/long_run.h"
#include "tests/sanitized.h"
#include "tests/sim/pair.h"
#include "transport/rtp/received_window.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::Impairment;

uint64_t seeds() { return long_run() ? 50 : 5; }
uint32_t works() { return long_run() ? 10'000 : sanitized ? 100 : 1000; }

// Writes of random sizes to random offsets, 32 at a time. Each succeeds, and each offset has the
// bytes that were written last.
struct Job : SimPair {
  Prng prng;

  Job(const std::string& name, uint64_t seed, const Retransmission& mode)
      : SimPair(
            name + std::to_string(seed) + std::string(urma::name(mode)),
            {.jetty = {.berths = 32}, .device = {.operation_timeout = 10s, .retransmission = mode}},
            {.jetty = {}, .device = {.operation_timeout = 10s, .retransmission = mode}}, seed),
        prng(seed) {
    // Makes the channel while the wire is still good.
    run(1);
  }

  void run(uint32_t count) {
    constexpr size_t most = 20'000;
    constexpr size_t places = 32;
    std::vector<std::vector<std::byte>> buffers(places);
    uint32_t posted = 0;
    uint32_t ended = 0;
    std::vector<size_t> vacant;
    for (size_t place = 0; place < places; ++place) vacant.push_back(place);
    while (ended < count) {
      while (posted < count && !vacant.empty()) {
        const size_t place = vacant.back();
        vacant.pop_back();
        auto& bytes = buffers[place];
        bytes = bytes_like(1 + prng.below(most), static_cast<unsigned>(posted));
        REQUIRE(here.jetty.post(write(bytes, target.segment, place * most).tag(place)) == 1);
        ++posted;
      }
      const auto completions = here.jetty.wait(20s);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& completion : completions) {
        REQUIRE(name(completion.status) == "ok");
        const auto& bytes = buffers[completion.tag];
        REQUIRE(same(bytes, std::span(there.memory).subspan(completion.tag * most, bytes.size())));
        vacant.push_back(completion.tag);
        ++ended;
      }
    }
  }

  // Sends numbered messages of random sizes. Each number arrives once, whole.
  void send(uint32_t count) {
    constexpr size_t most = 20'000;
    auto inbox = there.device.jetty({.receives = 32}).value();
    const RemoteJetty to = here.device.import(inbox.descriptor()).value().jetty;
    std::vector<std::vector<std::byte>> into(32, std::vector<std::byte>(most));
    for (size_t i = 0; i < into.size(); ++i) REQUIRE(inbox.receive(into[i], i));
    std::vector<std::vector<std::byte>> messages;
    for (uint32_t i = 0; i < count; ++i) {
      messages.push_back(bytes_like(4 + prng.below(most - 4), i));
      std::memcpy(messages.back().data(), &i, sizeof i);
    }
    std::vector<int> arrived(count);
    uint32_t posted = 0;
    for (uint32_t ended = 0; ended < count;) {
      while (posted < count && here.jetty.post(urma::send(messages[posted], to)) == 1) ++posted;
      for (const Completion& completion : here.jetty.wait(1ms)) {
        REQUIRE(name(completion.status) == "ok");
        ++ended;
      }
      for (const Completion& arrival : inbox.wait(0ms)) {
        const auto bytes = std::span(into[arrival.tag]).first(arrival.bytes);
        uint32_t number = count;
        std::memcpy(&number, bytes.data(), sizeof number);
        REQUIRE(number < count);
        REQUIRE(same(bytes, messages[number]));
        ++arrived[number];
        REQUIRE(inbox.receive(into[arrival.tag], arrival.tag));
      }
    }
    CHECK(std::all_of(arrived.begin(), arrived.end(), [](int times) { return times == 1; }));
  }

  // Posts fetch-adds of one word. Each value is fetched once.
  void add(uint32_t count) {
    std::vector<uint64_t> words(8);
    const Segment segment =
        there.device.register_memory(std::as_writable_bytes(std::span(words)), Rights::atomic)
            .value();
    const RemoteSegment at = here.device.import(segment.descriptor()).value().segment;
    std::vector<int> fetched(count);
    uint32_t posted = 0;
    for (uint32_t ended = 0; ended < count;) {
      while (posted < count && here.jetty.post(fetch_add(at, 8, 1)) == 1) ++posted;
      const auto completions = here.jetty.wait(20s);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& completion : completions) {
        REQUIRE(name(completion.status) == "ok");
        REQUIRE(completion.fetched() < count);
        ++fetched[completion.fetched()];
        ++ended;
      }
    }
    CHECK(std::all_of(fetched.begin(), fetched.end(), [](int times) { return times == 1; }));
    CHECK(words[1] == count);
  }

  Statistics statistics() { return here.device.stats().value(); }
};

template <class Trouble>
void in_each_mode(const std::string& name, Trouble&& trouble) {
  for (const NamedRetransmission& named : named_retransmissions()) {
    for (uint64_t seed = 1; seed <= seeds(); ++seed) {
      INFO(named.name << ", seed " << seed);
      Job job(name, seed, named.mode);
      trouble(job, named.mode);
    }
  }
}

TEST_CASE("R1: works succeed with random loss of up to 20 %") {
  for (const double loss : {0.0001, 0.001, 0.01, 0.05, 0.1, 0.2}) {
    in_each_mode("r1-" + std::to_string(loss), [&](Job& job, const Retransmission&) {
      job.hosts.network().faults.impairment = {.loss = loss, .delay = 10us};
      job.run(works());
    });
  }
}

TEST_CASE(
    "R2: works survive bursts, and loss of only acknowledgements, data, first or last packets") {
  // Lengths are in packets. A sender that waits for time-outs sends few packets, so a longer burst
  // would take more than the 1 s after which a silent channel is declared dead. With more works,
  // one burst in a hundred does so in any mode.
  for (const uint64_t length : {1, 5, 30}) {
    in_each_mode("r2-" + std::to_string(length), [&](Job& job, const Retransmission& mode) {
      const bool slow = mode.trigger == Retransmission::Trigger::timeout;
      job.hosts.network().faults.impairment = {
          .delay = 10us, .burst = 0.002, .burst_length = slow ? std::min(length, 5ul) : length};
      job.run(std::min(works(), 200u));
    });
  }
  // A gap of a thousand packets. A longer one would end the channel after 1 s.
  in_each_mode("r2-hole", [&](Job& job, const Retransmission&) {
    job.hosts.network().faults.impairment = {.delay = 10us, .hole_after = 500us, .hole_for = 300ms};
    job.run(works());
  });
  for (const auto only : {Impairment::Only::acks, Impairment::Only::data}) {
    in_each_mode(
        "r2-only-" + std::to_string(static_cast<int>(only)), [&](Job& job, const Retransmission&) {
          job.hosts.network().faults.impairment = {.loss = 0.3, .delay = 10us, .only = only};
          job.run(works() / 2);
        });
  }
  // Each slice loses its first or its last packet. It is repaired within two time-outs of at most 3
  // ms.
  for (const auto only : {Impairment::Only::first, Impairment::Only::last}) {
    in_each_mode("r2-end-" + std::to_string(static_cast<int>(only)),
                 [&](Job& job, const Retransmission&) {
                   job.hosts.network().faults.impairment = {.loss = 1, .delay = 10us, .only = only};
                   for (int i = 0; i < 10; ++i) {
                     const Time from = job.hosts.now();
                     job.run(1);
                     // The loss of the write, of its answer, and the delay that the lost answer
                     // caused.
                     CHECK(job.hosts.now() - from < 4 * 3ms);
                   }
                 });
  }
}

TEST_CASE("R3: works succeed when packets overtake one another and none is lost") {
  in_each_mode("r3", [](Job& job, const Retransmission& mode) {
    job.run(100);
    const Statistics before = job.statistics();
    job.hosts.network().faults.impairment = {.delay = 100us, .jitter = 100us};
    job.run(works());
    const Statistics after = job.statistics();
    const auto sent = after.packets_sent - before.packets_sent;
    const auto again = after.retransmitted - before.retransmitted;
    // gbn-fast is the wrong mode for this network and sel-fast a poor one; they only have to
    // deliver.
    if (mode.trigger == Retransmission::Trigger::timeout) CHECK(again * 1000 <= sent);
  });
}

TEST_CASE("R4: a message that the network repeats many times arrives once") {
  in_each_mode("r4-sends", [](Job& job, const Retransmission&) {
    job.hosts.network().faults.impairment = {
        .loss = 0.02, .duplicate = 0.5, .delay = 10us, .replay = 0.3, .replay_by = 6ms};
    job.send(works() / 4);
    CHECK(job.there.device.stats().value().duplicates > 0);
  });
}

TEST_CASE("R4: an atomic that the network repeats many times is executed once") {
  in_each_mode("r4-atomics", [](Job& job, const Retransmission&) {
    job.hosts.network().faults.impairment = {
        .loss = 0.02, .duplicate = 0.5, .delay = 10us, .replay = 0.3, .replay_by = 6ms};
    job.add(works() / 2);
    CHECK(job.there.device.stats().value().duplicates > 0);
  });
}

TEST_CASE("R4: duplicates, and replays after up to two time-outs, have no effect") {
  in_each_mode("r4", [](Job& job, const Retransmission&) {
    job.hosts.network().faults.impairment = {
        .duplicate = 0.5, .delay = 10us, .replay = 0.3, .replay_by = 6ms};
    job.run(works() / 2);
    CHECK(job.there.device.stats().value().duplicates > 0);
  });
}

TEST_CASE("R5: flipped bits are never delivered, because each corrupt packet is detected") {
  in_each_mode("r5", [](Job& job, const Retransmission&) {
    job.hosts.network().faults.impairment = {.corrupt = 0.05, .delay = 10us};
    job.run(works());
    job.hosts.network().faults.impairment = {};
    job.hosts.run_for(10ms);
    CHECK(job.hosts.network().counters().corrupted > 0);
    CHECK(job.here.device.stats().value().dropped_icrc +
              job.there.device.stats().value().dropped_icrc ==
          job.hosts.network().counters().corrupted);
  });
}

// PSNs have 24 bits, and more than all of them are used. A packet that is late by less than half a
// wrap is a duplicate, a later one is dropped; none is taken for a future packet.
TEST_CASE("R9: when PSNs wrap, packets that are up to nine tenths of a wrap late have no effect") {
  using transport::ReceivedWindow;
  ReceivedWindow::Pool pool(1);
  ReceivedWindow received(Psn::first(Psn::modulus - 8), ReceivedWindow::max_window, true);
  Prng prng(9);
  const uint64_t packets = Psn::modulus + 100'000;
  for (uint64_t i = 0; i < packets; ++i) {
    const auto wire = static_cast<uint32_t>((Psn::modulus - 8 + i) % Psn::modulus);
    const Psn psn = Psn::unwrap(received.expected() - 1, wire);
    if (received.receive(psn, pool) != ReceivedWindow::Arrival::fresh) FAIL("in order, at " << i);
    if (i % 1000 != 999) continue;
    // How late, as a share of a wrap: 0.0 to 0.9.
    const uint64_t late = 1 + prng.below(Psn::modulus / 10 * 9);
    const auto old = static_cast<uint32_t>((wire + Psn::modulus + 1 - late) % Psn::modulus);
    const auto arrival = received.classify(Psn::unwrap(received.expected() - 1, old), pool);
    const bool near = late <= Psn::modulus / 2;
    REQUIRE(arrival ==
            (near ? ReceivedWindow::Arrival::duplicate : ReceivedWindow::Arrival::invalid));
  }
  CHECK(received.expected() == Psn::first(Psn::modulus - 8) + packets);
  received.release(pool);
}

// An engine that was not run does not count that time against its peers.
TEST_CASE("R15: one host is stopped for a while, then both for long: works do not time out") {
  in_each_mode("r15", [](Job& job, const Retransmission&) {
    job.run(20);
    for (const Duration pause : {50ms, 500ms}) {
      job.hosts.stop(job.there);
      job.hosts.run_for(pause);
      job.hosts.stop(job.there, false);
      job.run(20);
    }
    // Works are in flight meanwhile.
    const auto bytes = bytes_like(20'000);
    for (int i = 0; i < 16; ++i) REQUIRE(job.here.jetty.post(write(bytes, job.target.segment)));
    job.hosts.run_for(20us);
    const Statistics before = job.statistics();
    for (const bool stopped : {true, false}) {
      job.hosts.stop(job.here, stopped);
      job.hosts.stop(job.there, stopped);
      if (stopped) job.hosts.run_for(30s);
    }
    for (size_t ended = 0; ended < 16;) {
      const auto completions = job.here.jetty.wait(20s);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& one : completions) CHECK(one.ok());
      ended += completions.size();
    }
    CHECK(job.statistics().retransmission_timeouts - before.retransmission_timeouts <= 2);
    CHECK(job.statistics().channels_lost == 0);
  });
}

}  // namespace
}  // namespace urma::test
