// SPDX-License-Identifier: Apache-2.0
// Queues that several Jetties share and several threads use.

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

TEST_CASE(
    "Jetties, each posted to by its own thread, complete into one queue that another thread "
    "polls") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:");
    Side user = Side::open("udp:", {.threads = mode});
    const Imported remote = user.device.import(owner.line()).value();
    constexpr size_t posters = 4;
    constexpr uint64_t works = 3000;  // of each Jetty
    Jfc jfc = user.device.jfc(posters * 16).value();
    std::vector<Jetty> jetties;
    for (size_t i = 0; i < posters; ++i) {
      jetties.push_back(user.device.jetty({.berths = 16, .completions = &jfc}).value());
    }
    const auto bytes = bytes_like(500, 1);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < posters; ++i) {
      threads.emplace_back([&, i] {
        for (uint64_t next = 0; next < works && !stop;) {
          const auto work = write(bytes, remote.segment, i * 1000).tag(next);
          next += jetties[i].post(work);
        }
      });
    }
    std::vector<std::vector<bool>> seen(posters, std::vector<bool>(works));
    uint64_t wrong = 0;
    for (uint64_t polled = 0; polled < posters * works;) {
      const auto completions = jfc.wait(patience);
      if (completions.empty()) break;
      for (const Completion& completion : completions) {
        size_t which = 0;
        while (which < posters && jetties[which].id() != completion.jetty) ++which;
        wrong += which == posters || !completion.ok() || seen[which][completion.tag];
        if (which < posters) seen[which][completion.tag] = true;
        ++polled;
      }
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (const auto& all : seen) CHECK(std::count(all.begin(), all.end(), true) == works);
    for (const Jetty& jetty : jetties) CHECK(jetty.vacant_berths() == 16);
  }
}

TEST_CASE("threads may take turns at polling, at waiting and at posting") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:");
    Side user = Side::open("udp:", {.threads = mode});
    const Imported remote = user.device.import(owner.line()).value();
    Jfc jfc = user.device.jfc(32).value();
    std::vector<Jetty> jetties;
    for (int i = 0; i < 2; ++i) {
      jetties.push_back(user.device.jetty({.berths = 16, .completions = &jfc}).value());
    }
    const auto bytes = bytes_like(100, 1);
    constexpr uint64_t works = 4000;
    std::mutex turn;
    uint64_t posted = 0;
    uint64_t polled = 0;
    const auto take_turn = [&] {
      const std::lock_guard lock(turn);
      if (polled == works) return false;
      while (posted < works && jetties[posted % 2].post(write(bytes, remote.segment)) == 1) {
        ++posted;
      }
      std::array<Completion, 4> out;
      const bool waits = polled % 2 == 0;
      const size_t count = waits ? jfc.wait(patience).size() : jfc.poll(out);
      polled += count;
      return polled < works && (count > 0 || !waits);
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (take_turn()) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(polled == works);
  }
}

TEST_CASE("Jetties are created and destroyed on a completion queue while another thread polls it") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:");
    Side user = Side::open("udp:", {.threads = mode});
    const Imported remote = user.device.import(owner.line()).value();
    Jfc jfc = user.device.jfc(64).value();
    const auto bytes = bytes_like(100, 1);
    std::atomic<bool> ended{false};
    std::atomic<uint64_t> posted{0};
    uint64_t polled = 0;
    uint64_t odd = 0;
    std::thread poller([&] {
      while (!ended || polled < posted) {
        const auto completions = jfc.wait(ended ? 1s : 1ms);
        if (completions.empty() && ended) break;
        polled += completions.size();
        for (const Completion& completion : completions) {
          odd += !completion.ok() && completion.status != Status::flushed &&
                 completion.status != Status::unknown;
        }
      }
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          auto jetty = user.device.jetty({.berths = 20, .receives = 5, .completions = &jfc});
          if (!jetty) {  // the completions of the Jetties before have not been polled yet
            std::this_thread::yield();
            continue;
          }
          std::vector<std::byte> inbox(100);
          posted += jetty->receive(inbox, 1);
          posted += jetty->post({write(bytes, remote.segment), write(bytes, remote.segment)});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ended = true;
    poller.join();
    CHECK(polled == posted);
    CHECK(odd == 0);
    CHECK(posted > 0);
    Jetty all = user.device.jetty({.berths = 64, .completions = &jfc}).value();
  }
}

TEST_CASE("works still complete after their completion queue was destroyed before its Jetties") {
  Side owner = Side::open("udp:");
  Side user = Side::open("udp:");
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(100, 1);
  std::optional<Jfc> jfc = user.device.jfc(64).value();
  Jetty jetty = user.device.jetty({.berths = 16, .completions = &*jfc}).value();
  Jfr jfr = user.device.jfr({.receives = 4, .completions = &*jfc}).value();
  REQUIRE(jetty.post(write(bytes, remote.segment)) == 1);
  jfc.reset();
  CHECK(collect(jetty, 1).at(0).ok());
  REQUIRE(jetty.post(write(bytes, remote.segment)) == 1);
}

TEST_CASE("several Jetties on one Jfr: buffers posted by one thread, arrivals polled by another") {
  for (const Threads mode : {Threads::served, Threads::inlined}) {
    Side owner = Side::open("udp:", {.threads = mode});
    Jfr jfr = owner.device.jfr({.receives = 32}).value();
    std::vector<Jetty> jetties;
    for (int i = 0; i < 3; ++i) {
      jetties.push_back(owner.device.jetty({.berths = 4, .receives_from = &jfr}).value());
    }
    constexpr uint64_t messages = 2000;  // from each sender
    const uint64_t all = messages * jetties.size();
    std::vector<std::vector<std::byte>> inbox(32, std::vector<std::byte>(600));
    std::array<std::atomic<bool>, 32> free;
    for (auto& one : free) one = true;
    std::atomic<bool> ended{false};
    std::atomic<uint64_t> refused{0};
    std::thread supplier([&] {
      for (uint64_t tag = 0; !ended; tag = (tag + 1) % inbox.size()) {
        if (!free[tag].load(std::memory_order_acquire) || jfr.vacant_receives() == 0) continue;
        free[tag] = false;
        refused += !jfr.receive(inbox[tag], tag);
      }
    });
    std::atomic<uint64_t> failed{0};
    std::vector<std::thread> senders;
    for (size_t i = 0; i < jetties.size(); ++i) {
      senders.emplace_back([&, i] {
        Side side = Side::open("udp:");
        const RemoteJetty target = side.device.import(jetties[i].descriptor()).value().jetty;
        const auto bytes = bytes_like(500, static_cast<unsigned>(i));
        uint64_t done = 0;
        for (uint64_t posted = 0; done < messages;) {
          while (posted < messages && side.jetty.post(send(bytes, target)) == 1) ++posted;
          const auto completions = side.jetty.wait(patience);
          if (completions.empty()) break;
          for (const Completion& completion : completions) failed += !completion.ok();
          done += completions.size();
        }
        failed += done != messages;
      });
    }
    uint64_t came = 0;
    while (came < all) {
      const auto arrivals = jfr.wait(patience);
      if (arrivals.empty()) break;
      for (const Completion& arrival : arrivals) {
        size_t which = 0;
        while (which < jetties.size() && jetties[which].id() != arrival.jetty) ++which;
        const bool right = which < jetties.size() && arrival.ok() &&
                           std::ranges::equal(std::span(inbox[arrival.tag]).first(500),
                                              bytes_like(500, static_cast<unsigned>(which)));
        failed += !right;
        free[arrival.tag].store(true, std::memory_order_release);
        ++came;
      }
    }
    // The last answers of an inlined device leave while it is polled.
    for (int i = 0; i < 10; ++i) CHECK(jfr.wait(10ms).empty());
    for (std::thread& sender : senders) sender.join();
    ended = true;
    supplier.join();
    CHECK(refused == 0);
    CHECK(came == all);
    CHECK(failed == 0);
  }
}

TEST_CASE("three threads use one Jetty: one posts works, one posts receives, one polls") {
  Side side = Side::open("udp:", {}, {.berths = 16, .receives = 16});
  const RemoteJetty self = side.jetty.local();
  constexpr uint64_t messages = 5000;
  const auto bytes = bytes_like(64, 1);
  std::vector<std::byte> inbox(64);
  std::thread poster([&] {
    for (uint64_t posted = 0; posted < messages;) posted += side.jetty.post(send(bytes, self));
  });
  std::thread receiver([&] {
    for (uint64_t posted = 0; posted < messages;) posted += side.jetty.receive(inbox);
  });
  const auto done = collect(side.jetty, 2 * messages);
  poster.join();
  receiver.join();
  CHECK(done.size() == 2 * messages);
  for (const Completion& completion : done) REQUIRE(completion.ok());
}

TEST_CASE("a Jfr and its Jetties are destroyed in any order, by any thread") {
  Side peer = Side::open("udp:");
  const auto bytes = bytes_like(3000, 1);
  for (int round = 0; round < 40; ++round) {
    Side side = Side::open("udp:");
    std::optional<Jfr> jfr = side.device.jfr({.receives = 8}).value();
    std::optional<Jetty> one = side.device.jetty({.berths = 4, .receives_from = &*jfr}).value();
    std::optional<Jetty> two = side.device.jetty({.berths = 4, .receives_from = &*jfr}).value();
    const RemoteJetty to_one = peer.device.import(one->descriptor()).value().jetty;
    const RemoteJetty to_two = peer.device.import(two->descriptor()).value().jetty;
    std::vector<std::byte> inbox(8 * 3000);
    for (size_t i = 0; i < 8; ++i)
      REQUIRE(jfr->receive(std::span(inbox).subspan(i * 3000, 3000), i));
    REQUIRE(run_one(peer.jetty, send(bytes, to_one)).ok());  // now there is a channel
    REQUIRE(peer.jetty.post({send(bytes, to_one), send(bytes, to_two), send(bytes, to_one)}) == 3);
    const auto end = [&](int which) {
      if (which == 0) jfr.reset();
      if (which == 1) one.reset();
      if (which == 2) two.reset();
      if (which == 3) side.device.close();
    };
    std::thread other([&] {
      end(round % 4);
      end((round + 1) % 4);
    });
    end((round + 2) % 4);
    end((round + 3) % 4);
    other.join();
    const auto done = collect(peer.jetty, 3);
    REQUIRE(done.size() == 3);
  }
}

TEST_CASE("queues that cannot be shared are refused with the reason and the fix") {
  const auto says = [](const Error& error, std::string_view what) {
    INFO(error.message);
    CHECK(error.message.find(what) != std::string::npos);
    CHECK(error.message.find("Fix: ") != std::string::npos);
  };
  Side side = Side::open("udp:", {.limits = {.jetties = 2}});
  Side other = Side::open("udp:");
  Jfc foreign_jfc = other.device.jfc(64).value();
  Jfr foreign_jfr = other.device.jfr().value();
  Jfc small = side.device.jfc(8).value();
  CHECK(side.device.jfr({.receives = 0}).status() == Status::invalid_argument);
  says(side.device.jfr({.receives = 0}).error(), "jfr: receives is 0");
  says(side.device.jfr({.receives = 1 << 20}).error(), "32768");
  says(side.device.jfr({.completions = &foreign_jfc}).error(),
       "jfr: its jfc belongs to another device");
  says(side.device.jfr({.receives = 5, .completions = &small}).error(), "10 (berths");
  says(side.device.jetty({.completions = &foreign_jfc}).error(), "jetty: its jfc");
  says(side.device.jetty({.receives_from = &foreign_jfr}).error(), "jetty: its jfr");
  CHECK(side.device.jetty({.receives_from = &foreign_jfr}).status() == Status::invalid_argument);
  Jfr jfr = side.device.jfr({.receives = 4, .completions = &small}).value();
  says(side.device.jetty({.receives = 1, .receives_from = &jfr}).error(), "receives_from names");
  says(side.device.jfr().error(), "Limits::jetties");
  Jfr moved = std::move(jfr);
  says(side.device.jetty({.receives_from = &jfr}).error(), "moved from");
  CHECK(moved.vacant_receives() == 4);
  std::vector<std::byte> inbox(10);
  CHECK(moved.receive(inbox));
  side.device.close();
  CHECK_FALSE(moved.receive(inbox));
  CHECK(moved.wait(1s).front().status == Status::flushed);
  CHECK(moved.wait(1s).front().status == Status::closed);
  CHECK(side.device.jfr().status() == Status::closed);
}

TEST_CASE("a published Jfr is found, and its buffers receive messages of any importer") {
  Side owner = Side::open("udp:");
  Side user = Side::open("udp:");
  Jfr jfr = owner.device.jfr({.receives = 4}).value();
  // Other copies of this test may run at the same time.
  const std::string both = "shared-jfr-" + std::to_string(getpid());
  const std::string alone = both + "-alone";
  owner.device.publish(both, owner.segment, jfr).value();
  owner.device.publish(alone, jfr).value();
  const auto bytes = bytes_like(100, 1);
  std::vector<std::byte> inbox(100);
  for (const std::string& name : {both, alone}) {
    const Imported found = user.device.import("urma://localhost/" + name).value();
    REQUIRE(jfr.receive(inbox, 1));
    CHECK(run_one(user.jetty, send(bytes, found.jetty)).ok());
    const auto arrivals = jfr.wait(patience);
    REQUIRE(arrivals.size() == 1);
    CHECK(arrivals[0].jetty == jfr.id());
    CHECK(jfr.local().id == found.jetty.id);
    CHECK(inbox == bytes);
  }
}

}  // namespace
}  // namespace urma::test
