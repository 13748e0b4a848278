// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr size_t memory_bytes = 1 << 18;

// A device with several engines, and a Jetty of each.
struct Several {
  Device device;
  Segment segment;
  std::vector<Jetty> jetties;

  static Several open(const Medium& medium, unsigned engines, const DeviceOptions& options = {}) {
    const bool more = medium.text().find('?') != std::string::npos;
    const std::string text =
        medium.text() + (more ? "&" : "?") + "engines=" + std::to_string(engines);
    if (text.find("udp:") != text.npos) require_loopback();
    Device device = urma::open(text, options).value();
    Segment segment =
        device.allocate(memory_bytes, Rights::read | Rights::write | Rights::atomic).value();
    std::vector<Jetty> jetties;
    for (unsigned i = 0; i < engines; ++i)
      jetties.push_back(device.jetty({.berths = 64, .receives = 64}).value());
    return {std::move(device), std::move(segment), std::move(jetties)};
  }
  // Orders what the device's threads placed with what the test reads.
  void in_order() { REQUIRE(device.stats().ok()); }
};

// The two sides of a test, of which one uses what the other one owns.
struct SeveralAndSeveral {
  SeveralAndSeveral(std::string_view driver, unsigned ours, unsigned theirs,
                    const DeviceOptions& options = {.threads = Threads::served})
      : medium(driver),
        user(Several::open(medium, ours, options)),
        owner(Several::open(medium, theirs, options)) {}

  RemoteSegment segment() { return user.device.import(owner.segment.descriptor()).value().segment; }
  RemoteJetty jetty(size_t which) {
    return user.device.import(owner.jetties[which].descriptor()).value().jetty;
  }
  Completion run(Jetty& jetty, const Work& work) {
    const Completion done = run_one(jetty, work);
    owner.in_order();
    return done;
  }

  Medium medium;
  Several user;
  Several owner;
};

struct EngineCounts {
  unsigned ours;
  unsigned theirs;
};
constexpr EngineCounts engine_counts[] = {{1, 3}, {3, 1}, {3, 2}, {2, 4}};

TEST_CASE("memory is written, read and changed from each engine") {
  for (const std::string_view driver : media) {
    for (const EngineCounts& count : engine_counts) {
      INFO(driver << " " << count.ours << " to " << count.theirs);
      SeveralAndSeveral both(driver, count.ours, count.theirs);
      const RemoteSegment there = both.segment();
      const std::span<std::byte> memory = both.owner.segment.bytes();
      uint64_t added = 0;
      for (unsigned i = 0; i < count.ours; ++i) {
        Jetty& jetty = both.user.jetties[i];
        const auto bytes = bytes_like(3000, i + 1);
        REQUIRE(both.run(jetty, write(bytes, there, 8192)).ok());
        CHECK(same(bytes, memory.subspan(8192, bytes.size())));
        std::vector<std::byte> back(bytes.size());
        REQUIRE(both.run(jetty, read(back, there, 8192)).ok());
        CHECK(same(bytes, back));
        REQUIRE(both.run(jetty, write(bytes, there, 16384).notify(there, 64, 5 + i)).ok());
        CHECK(std::atomic_ref(reinterpret_cast<uint64_t&>(memory[64])).load() == 5 + i);
        const Completion done = both.run(jetty, fetch_add(there, 128, 3));
        REQUIRE(done.ok());
        CHECK(done.fetched() == added);
        added += 3;
      }
    }
  }
}

TEST_CASE("messages and immediates arrive at a Jetty of any engine, with the data") {
  for (const std::string_view driver : media) {
    for (const EngineCounts& count : engine_counts) {
      SeveralAndSeveral both(driver, count.ours, count.theirs);
      const RemoteSegment there = both.segment();
      const std::span<std::byte> memory = both.owner.segment.bytes();
      for (unsigned i = 0; i < count.ours; ++i) {
        for (unsigned k = 0; k < count.theirs; ++k) {
          INFO(driver << " from engine " << i << " of " << count.ours << " to engine " << k
                      << " of " << count.theirs);
          Jetty& from = both.user.jetties[i];
          Jetty& to = both.owner.jetties[k];
          const RemoteJetty target = both.jetty(k);
          std::vector<std::byte> buffer(64);
          const auto message = bytes_like(48, i + k);
          REQUIRE(to.receive(buffer, 1));
          REQUIRE(both.run(from, send(message, target)).ok());
          const auto arrivals = collect(to, 1);
          REQUIRE(arrivals.size() == 1);
          CHECK(arrivals[0].from_jetty == from.id());
          CHECK(same(message, std::span(buffer).first(message.size())));

          const auto data = bytes_like(20000, i + k + 7);
          REQUIRE(both.run(from, write(data, there, 4096).to(target).immediate(i * 100 + k)).ok());
          const auto notified = collect(to, 1);
          REQUIRE(notified.size() == 1);
          CHECK(notified[0].immediate == i * 100 + k);
          CHECK(same(data, memory.subspan(4096, data.size())));
        }
      }
    }
  }
}

// The application compares the peer of an arrival with what it imported, and answers it.
TEST_CASE("a peer has one name, whichever engine it is met by") {
  for (const std::string_view driver : media) {
    INFO(driver);
    SeveralAndSeveral both(driver, 3, 2);
    for (unsigned k = 0; k < 2; ++k) {
      for (unsigned i = 0; i < 3; ++i) {
        Jetty& user = both.user.jetties[i];
        Jetty& owner = both.owner.jetties[k];
        const RemoteJetty back = both.owner.device.import(user.descriptor()).value().jetty;
        std::vector<std::byte> buffer(8);
        REQUIRE(owner.receive(buffer, 1));
        REQUIRE(run_one(user, send(bytes_like(8), both.jetty(k))).ok());
        const auto arrivals = collect(owner, 1);
        REQUIRE(arrivals.size() == 1);
        CHECK(arrivals[0].from == back.peer);
        // From a Jetty of the other engine, too, by the name that the arrival had.
        RemoteJetty answer = back;
        answer.peer = arrivals[0].from;
        REQUIRE(user.receive(buffer, 2));
        REQUIRE(run_one(both.owner.jetties[1 - k], send(bytes_like(8, 9), answer)).ok());
        REQUIRE(collect(user, 1).size() == 1);
      }
    }
  }
}

TEST_CASE("a peer that was not imported can be answered from each engine") {
  SeveralAndSeveral both("udp:", 2, 3);
  Jetty& user = both.user.jetties[1];
  std::vector<std::byte> buffer(8);
  REQUIRE(both.owner.jetties[2].receive(buffer, 1));
  REQUIRE(run_one(user, send(bytes_like(8), both.jetty(2))).ok());
  const auto arrivals = collect(both.owner.jetties[2], 1);
  REQUIRE(arrivals.size() == 1);
  RemoteJetty answer{.peer = arrivals[0].from,
                     .id = user.id(),
                     .token = parse_descriptor(user.descriptor()).value().jetty->token};
  for (Jetty& jetty : both.owner.jetties) {
    REQUIRE(user.receive(buffer, 2));
    REQUIRE(run_one(jetty, send(bytes_like(8, 3), answer)).ok());
    REQUIRE(collect(user, 1).size() == 1);
  }
}

// The new process is known by the line of one engine, and first used by that of another.
TEST_CASE("a device that restarted is reached by its new lines, and not by the old ones") {
  for (int round = 0; round < 6; ++round) {
    for (const bool speaks_first : {false, true}) {
      INFO("round " << round << (speaks_first ? ", it speaks first" : ""));
      const Medium medium("udp:127.0.0.77");
      Side user = Side::open("udp:", {.threads = Threads::served});
      std::optional<Several> owner = Several::open(medium, 2, {.threads = Threads::served});
      const RemoteSegment old = user.device.import(owner->segment.descriptor()).value().segment;
      owner.reset();
      owner = Several::open(medium, 2, {.threads = Threads::served});
      if (speaks_first) {
        for (Jetty& jetty : owner->jetties) {
          const RemoteJetty target = owner->device.import(user.jetty.descriptor()).value().jetty;
          std::array<std::byte, 8> buffer;
          REQUIRE(user.jetty.receive(buffer, 1));
          REQUIRE(run_one(jetty, send(bytes_like(8), target)).ok());
          REQUIRE(collect(user.jetty, 1).size() == 1);
        }
      }
      std::array<std::byte, 8> buffer;
      for (Jetty& jetty : owner->jetties) {
        REQUIRE(jetty.receive(buffer, 1));
        const RemoteJetty target = user.device.import(jetty.descriptor()).value().jetty;
        CHECK(run_one(user.jetty, send(bytes_like(8), target)).ok());
      }
      CHECK(run_one(user.jetty, write(bytes_like(8), old)).status == Status::peer_restarted);
    }
  }
}

// The server answers each client, and does not keep those that have gone.
TEST_CASE("peers that were answered and not imported are forgotten") {
  const DeviceOptions few{.threads = Threads::served,
                          .idle_timeout = 20ms,
                          .limits = {.jetties = 16, .peers = 4, .segments = 4}};
  const Medium medium("udp:127.0.0.78");
  Several server = Several::open(medium, 2, few);
  for (int client = 0; client < 12; ++client) {
    INFO("client " << client);
    Side one = Side::open("udp:", {.threads = Threads::served});
    Jetty& jetty = server.jetties[static_cast<size_t>(client) % 2];
    std::array<std::byte, 8> buffer;
    REQUIRE(jetty.receive(buffer, 1));
    const RemoteJetty target = one.device.import(jetty.descriptor()).value().jetty;
    REQUIRE(run_one(one.jetty, send(bytes_like(8), target)).ok());
    const auto arrivals = collect(jetty, 1);
    REQUIRE(arrivals.size() == 1);
    const RemoteJetty back{.peer = arrivals[0].from,
                           .id = one.jetty.id(),
                           .token = parse_descriptor(one.jetty.descriptor()).value().jetty->token};
    REQUIRE(one.jetty.receive(buffer, 1));
    REQUIRE(run_one(jetty, send(bytes_like(8), back)).ok());
  }
}

TEST_CASE("an import does not need more room for peers than the device has") {
  const DeviceOptions few{.threads = Threads::served,
                          .limits = {.jetties = 16, .peers = 3, .segments = 4}};
  const Medium medium("udp:");
  Side plain = Side::open("udp:", {.threads = Threads::served});
  Several other = Several::open(medium, 2, {.threads = Threads::served});
  for (const unsigned engines : {1u, 3u}) {
    Several one = Several::open(medium, engines, few);
    const RemoteSegment first = one.device.import(plain.segment.descriptor()).value().segment;
    const RemoteSegment second = one.device.import(other.segment.descriptor()).value().segment;
    for (Jetty& jetty : one.jetties) {
      CHECK(run_one(jetty, write(bytes_like(8), first)).ok());
      CHECK(run_one(jetty, write(bytes_like(8), second)).ok());
      CHECK(run_one(jetty, write(bytes_like(8), one.segment.local())).ok());
    }
  }
  Several full = Several::open(
      medium, 2,
      {.threads = Threads::served, .limits = {.jetties = 16, .peers = 1, .segments = 4}});
  REQUIRE(full.device.import(plain.segment.descriptor()).ok());
  const auto refused = full.device.import(other.jetties[1].descriptor());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status() == Status::no_resources);
  CHECK(refused.error().message.find("Limits::peers") != std::string::npos);
}

TEST_CASE("a device uses its own memory and Jetties from each of its engines") {
  for (const std::string_view driver : media) {
    INFO(driver);
    const Medium medium(driver);
    Several one = Several::open(medium, 3, {.threads = Threads::served});
    for (Jetty& from : one.jetties) {
      CHECK(from.local().peer == one.segment.local().peer);
      CHECK(one.device.import(from.descriptor()).value().jetty.peer == from.local().peer);
      REQUIRE(run_one(from, write(bytes_like(500), one.segment.local(), 100)).ok());
      for (Jetty& to : one.jetties) {
        if (&to == &from) continue;
        REQUIRE(
            run_one(from,
                    write(bytes_like(500), one.segment.local(), 100).to(to.local()).immediate(4))
                .ok());
        REQUIRE(collect(to, 1).size() == 1);
      }
    }
  }
}

// Works are posted from all engines while the call runs.
TEST_CASE("after unregister no engine writes the memory") {
  for (const std::string_view driver : media) {
    for (int round = 0; round < 5; ++round) {
      INFO(driver << " round " << round);
      SeveralAndSeveral both(driver, 3, 2, {.threads = Threads::automatic});
      const RemoteSegment there = both.segment();
      std::atomic<unsigned> begun{0};
      std::atomic<unsigned> refused{0};
      std::vector<std::thread> writers;
      for (Jetty& jetty : both.user.jetties) {
        const uint64_t offset = writers.size() * 4096;
        writers.emplace_back([&, offset] {
          const auto bytes = bytes_like(2048, 3);
          for (bool ended = false, first = true; !ended;) {
            if (jetty.post(write(bytes, there, offset)) == 0) break;
            for (const Completion& done : jetty.wait(patience)) {
              ended = ended || !done.ok();
              if (done.status == Status::remote_access) ++refused;
            }
            if (first) ++begun;
            first = false;
          }
        });
      }
      while (begun < writers.size()) std::this_thread::yield();
      REQUIRE(both.owner.segment.unregister().ok());
      const std::span<std::byte> memory = both.owner.segment.bytes();
      std::memset(memory.data(), 0x55, memory.size());
      for (std::thread& writer : writers) writer.join();
      CHECK(refused == writers.size());
      CHECK(all_are(memory, std::byte{0x55}));
    }
  }
}

TEST_CASE("each engine knows the tokens that are valid") {
  for (const std::string_view driver : media) {
    INFO(driver);
    SeveralAndSeveral both(driver, 3, 3);
    const RemoteSegment older = both.segment();
    const auto bytes = bytes_like(100);
    const auto all_end_as = [&](const RemoteSegment& there, Status status) {
      for (Jetty& jetty : both.user.jetties) {
        // By a packet to each engine, and by a copy where the memory is mapped.
        CHECK(both.run(jetty, write(bytes, there)).status == status);
        for (size_t k = 0; k < 3; ++k)
          CHECK(both.run(jetty, write(bytes, there).to(both.jetty(k)).immediate(1)).status ==
                status);
      }
      for (Jetty& jetty : both.owner.jetties) {
        std::array<Completion, 64> some;
        while (jetty.poll(some) > 0) continue;
      }
    };
    all_end_as(older, Status::ok);
    REQUIRE(both.owner.segment.rotate().ok());
    const RemoteSegment newer = both.segment();
    all_end_as(older, Status::ok);
    all_end_as(newer, Status::ok);
    CHECK(both.owner.segment.rotate().status() == Status::invalid_argument);
    REQUIRE(both.owner.segment.retire().ok());
    all_end_as(older, Status::remote_access);
    all_end_as(newer, Status::ok);
    REQUIRE(both.owner.segment.revoke().ok());
    all_end_as(newer, Status::remote_access);
    // All engines know a segment that shares the TokenID of another one.
    Segment next = both.owner.device.allocate(4096).value();
    Segment beside = both.owner.device.allocate(4096, {.with = &next}).value();
    for (const Segment* segment : {&next, &beside})
      all_end_as(both.user.device.import(segment->descriptor()).value().segment, Status::ok);
  }
}

TEST_CASE("works from each engine end when the peer's device closes, and reach its successor") {
  for (const std::string_view driver : media) {
    INFO(driver);
    SeveralAndSeveral both(driver, 3, 2);
    const RemoteSegment there = both.segment();
    const auto bytes = bytes_like(100);
    for (Jetty& jetty : both.user.jetties) REQUIRE(both.run(jetty, write(bytes, there)).ok());
    both.owner.device.close();
    both.owner = Several::open(both.medium, 2, {.threads = Threads::served});
    for (Jetty& jetty : both.user.jetties) CHECK_FALSE(both.run(jetty, write(bytes, there)).ok());
    unsigned left = 0;
    std::array<Event, 16> events;
    for (const Event& event : std::span(events).first(both.user.device.events(events))) {
      if (event.kind != EventKind::peer_left && event.kind != EventKind::peer_restarted) continue;
      CHECK(event.peer == there.peer);
      ++left;
    }
    CHECK(left > 0);
    const RemoteSegment again = both.segment();
    for (Jetty& jetty : both.user.jetties) CHECK(both.run(jetty, write(bytes, again)).ok());
  }
}

TEST_CASE("closing a device ends the works and waits of all its engines") {
  for (const std::string_view driver : media) {
    INFO(driver);
    SeveralAndSeveral both(driver, 3, 1, {.threads = Threads::automatic});
    const int descriptor = both.user.device.events_fd().value();
    std::atomic<unsigned> ended{0};
    std::vector<std::thread> waiters;
    for (Jetty& jetty : both.user.jetties) {
      waiters.emplace_back([&] {
        const auto last = jetty.wait(patience);
        if (last.size() == 1 && last[0].status == Status::closed) ++ended;
      });
    }
    both.user.device.close();
    for (std::thread& waiter : waiters) waiter.join();
    CHECK(ended == 3);
    CHECK(readable(descriptor));
    Event event;
    for (int i = 0; i < 100 && event.kind != EventKind::closed; ++i)
      REQUIRE(both.user.device.events({&event, 1}) == 1);
    CHECK(event.kind == EventKind::closed);
    CHECK(both.user.device.jetty().status() == Status::closed);
  }
}

// Returns how long a device takes to close after each of its engines has written to a peer that
// then does not run, and so confirms no goodbye.
Duration time_to_close(unsigned engines) {
  const Medium medium("udp:");
  Side silent = Side::open(medium.text(), {.threads = Threads::inlined});
  Several user = Several::open(medium, engines, {.threads = Threads::served});
  const RemoteSegment there = user.device.import(silent.segment.descriptor()).value().segment;
  const auto bytes = bytes_like(8);
  for (Jetty& jetty : user.jetties) {
    REQUIRE(jetty.post(write(bytes, there)) == 1);
    Completion done;
    Completion other;
    while (jetty.poll({&done, 1}) == 0) REQUIRE(silent.jetty.poll({&other, 1}) == 0);
    REQUIRE(done.ok());
  }
  const auto begin = std::chrono::steady_clock::now();
  user.device.close();
  const Duration time = std::chrono::steady_clock::now() - begin;
  for (Jetty& jetty : user.jetties) {
    CHECK(jetty.post(write(bytes, there)) == 0);
    Completion last;
    CHECK(jetty.poll({&last, 1}) == 1);
    CHECK(last.status == Status::closed);
  }
  return time;
}

TEST_CASE("the engines of a device close at the same time") {
  // One after the other, they take three times as long as one. Other processes only make both
  // longer, so one fast try is enough.
  Duration one = time_to_close(1);
  Duration eight = time_to_close(8);
  for (int tries = 1; eight >= 2 * one && tries < 10; ++tries) {
    one = std::min(one, time_to_close(1));
    eight = std::min(eight, time_to_close(8));
  }
  CHECK(eight < 2 * one);
}

TEST_CASE("a thread for each engine sends to a Jetty of its own, and each message arrives once") {
  constexpr uint64_t rounds = 3000;
  constexpr unsigned threads = 3;
  for (const std::string_view driver : media) {
    INFO(driver);
    SeveralAndSeveral both(driver, threads, threads, {.threads = Threads::automatic});
    std::atomic<unsigned> fine{0};
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) {
      const RemoteJetty target = both.jetty(i);
      running.emplace_back([&, i] {
        std::array<uint64_t, 32> buffers{};
        Jetty& jetty = both.owner.jetties[i];
        uint64_t wrong = 0;
        const auto offer = [&](uint64_t slot) {
          wrong += !jetty.receive(std::as_writable_bytes(std::span(&buffers[slot], 1)), slot);
        };
        for (uint64_t slot = 0; slot < buffers.size(); ++slot) offer(slot);
        uint64_t sum = 0;
        for (uint64_t come = 0; come < rounds;) {
          const auto some = jetty.wait(patience);
          if (some.empty()) return;
          for (const Completion& arrival : some) {
            sum += buffers[arrival.tag];
            offer(arrival.tag);
          }
          come += some.size();
        }
        if (wrong == 0 && sum == rounds * (rounds + 1) / 2) ++fine;
      });
      running.emplace_back([&, i, target] {
        Jetty& jetty = both.user.jetties[i];
        uint64_t ended = 0;
        bool all_ok = true;
        for (uint64_t n = 1; ended < rounds;) {
          const auto bytes = std::as_bytes(std::span(&n, 1));
          if (n <= rounds && jetty.post(send(bytes, target).inline_data()) == 1) {
            ++n;
            continue;
          }
          const auto some = jetty.wait(patience);
          if (some.empty()) return;
          for (const Completion& done : some) all_ok = all_ok && done.ok();
          ended += some.size();
        }
        if (all_ok) ++fine;
      });
    }
    for (std::thread& one : running) one.join();
    CHECK(fine == 2 * threads);
    const Statistics sums = both.user.device.stats().value();
    CHECK(sums.works == rounds * threads);
    CHECK(sums.segments == 1);
  }
}

// Each thread adds by an engine of its own, over channels that lose packets, and the owner's
// engines add to the same words.
TEST_CASE("each atomic executes once though packets of all engines are lost") {
  constexpr uint64_t rounds = 400;
  constexpr unsigned threads = 3;
  SeveralAndSeveral both("fault(loss=5%,dup=5%,seed=9):udp:", threads, 2,
                         {.threads = Threads::automatic});
  const RemoteSegment there = both.segment();
  std::atomic<unsigned> fine{0};
  std::vector<std::thread> running;
  for (Jetty& jetty : both.user.jetties) {
    running.emplace_back([&] {
      uint64_t posted = 0;
      for (uint64_t ended = 0; ended < rounds;) {
        while (posted < rounds && jetty.post(fetch_add(there, 8 * (posted % 4), 1)) == 1) ++posted;
        const auto some = jetty.wait(patience);
        if (some.empty()) return;
        for (const Completion& done : some) {
          if (!done.ok()) return;
        }
        ended += some.size();
      }
      ++fine;
    });
  }
  for (std::thread& one : running) one.join();
  REQUIRE(fine == threads);
  both.owner.in_order();
  for (size_t word = 0; word < 4; ++word) {
    uint64_t value = 0;
    std::memcpy(&value, &both.owner.segment.bytes()[8 * word], sizeof value);
    CHECK(value == threads * rounds / 4);
  }
  CHECK(both.user.device.stats().value().faults_injected > 0);
}

TEST_CASE("a line that contradicts an earlier one about a living device changes nothing") {
  SeveralAndSeveral both("udp:", 1, 4);
  const RemoteSegment there = both.segment();
  Jetty& jetty = both.user.jetties[0];
  std::vector<RemoteJetty> targets;
  for (size_t k = 0; k < 4; ++k) targets.push_back(both.jetty(k));
  Descriptor shorter = parse_descriptor(both.owner.segment.descriptor()).value();
  shorter.engines.resize(1);
  std::array<std::byte, 8> buffer;
  for (size_t k = 0; k < 4; ++k) {
    // The Jetty notifies an engine that the line does not list, before and after its import.
    for (int round = 0; round < 2; ++round) {
      REQUIRE(both.owner.jetties[k].receive(buffer, 1));
      REQUIRE(run_one(jetty, send(bytes_like(8), targets[k])).ok());
      REQUIRE(both.user.device.import(to_string(shorter), {.retransmission = urma::sel_fast}).ok());
      CHECK(run_one(jetty, write(bytes_like(8), there)).ok());
    }
  }
  Descriptor elsewhere = parse_descriptor(both.owner.jetties[1].descriptor()).value();
  elsewhere.eid = ipv4(127, 0, 0, 250);
  for (Endpoint& place : elsewhere.engines) place = {parse_address("::1").value(), 4793};
  const auto refused = both.user.device.import(to_string(elsewhere));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("::1") != std::string::npos);
}

TEST_CASE("queues that are shared belong to one engine") {
  SeveralAndSeveral both("udp:", 1, 3);
  Device& device = both.owner.device;
  Jfc first = device.jfc(1024).value();
  Jfr receives = device.jfr({.receives = 8}).value();
  Jfr fitting = device.jfr({.receives = 8, .completions = &first}).value();
  const auto refused =
      device.jetty({.berths = 8, .completions = &first, .receives_from = &receives});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("different engines") != std::string::npos);
  Jetty jetty =
      device.jetty({.berths = 8, .completions = &first, .receives_from = &fitting}).value();
  std::vector<std::byte> buffer(8);
  REQUIRE(fitting.receive(buffer, 5));
  const RemoteJetty target = both.user.device.import(jetty.descriptor()).value().jetty;
  REQUIRE(run_one(both.user.jetties[0], send(bytes_like(8), target)).ok());
  const auto arrivals = first.wait(patience);
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].tag == 5);
}

TEST_CASE("a lane leads to the memory of a device with several engines") {
  SeveralAndSeveral both("cxl:", 3, 3);
  for (Jetty& jetty : both.user.jetties) {
    Lane lane = jetty.lane(both.segment()).value();
    const auto bytes = bytes_like(64);
    REQUIRE(lane.write(bytes, 256) == Status::ok);
    CHECK(same(bytes, both.owner.segment.bytes().subspan(256, 64)));
  }
}

TEST_CASE("engines that a device cannot have are refused with the cure") {
  const Medium window("cxl:");
  struct {
    std::string text;
    Threads threads;
    Status status;
    std::string_view says;
  } const all[] = {
      {"udp:?engines=0", Threads::automatic, Status::invalid_argument, "engines must be 1 to 8"},
      {"udp:?engines=9", Threads::automatic, Status::invalid_argument, "engines must be 1 to 8"},
      {"udp:?engines=2x", Threads::automatic, Status::invalid_argument, "engines must be 1 to 8"},
      {"udp:?engines=2", Threads::inlined, Status::invalid_argument, "Threads::automatic"},
      {"sim:few?engines=2", Threads::automatic, Status::unsupported, "leave out engines"},
      {"paths():udp:127.0.0.1:0+udp:127.0.0.2:0?engines=2", Threads::automatic,
       Status::invalid_argument, "engines"},
      {window.text() + "?share=segment&engines=2", Threads::automatic, Status::unsupported,
       "share=segment"},
  };
  for (const auto& one : all) {
    INFO(one.text);
    const auto refused = urma::open(one.text, {.threads = one.threads});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status() == one.status);
    CHECK(refused.error().message.find(one.says) != std::string::npos);
    CHECK(refused.error().message.find("Fix: ") != std::string::npos);
  }
  CHECK(urma::open("udp:?engines=1", {.threads = Threads::inlined}).ok());
}

}  // namespace
}  // namespace urma::test
