// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "base/prng.h"
#include "tests/api/helpers.h"

namespace urma::test {
namespace {

class Epoll {
 public:
  Epoll() : descriptor_(epoll_create1(EPOLL_CLOEXEC)) {}
  Epoll(const Epoll&) = delete;
  ~Epoll() { close(descriptor_); }
  void add(int descriptor, uint64_t what) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = what}};
    REQUIRE(epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event) == 0);
  }
  // Returns -1 if nothing arrives in time.
  int wait(int limit_ms = 10'000) {
    epoll_event event{};
    return epoll_wait(descriptor_, &event, 1, limit_ms) == 1 ? static_cast<int>(event.data.u64)
                                                             : -1;
  }

 private:
  int descriptor_;
};

// Runs the loop that `Jetty::fd` documents until it has seen `count` arrivals. Returns how many of
// them were new.
template <class Queue>
uint64_t receive_asleep(Queue& queue, uint64_t count, uint64_t& sleeps) {
  Epoll epoll;
  epoll.add(queue.fd().value(), 0);
  std::vector<bool> seen(count);
  std::array<Completion, 16> out;
  uint64_t fresh = 0;
  for (uint64_t arrived = 0; arrived < count;) {
    while (const size_t some = queue.poll(out)) {
      arrived += some;
      for (const Completion& completion : std::span(out).first(some)) {
        if (!completion.ok() || completion.immediate >= count) return fresh;
        fresh += !seen[completion.immediate];
        seen[completion.immediate] = true;
      }
    }
    if (arrived >= count || !queue.arm()) continue;
    ++sleeps;
    if (epoll.wait() != 0) break;
  }
  return fresh;
}

// Posts immediates 0, 1, ... with random pauses. Returns the number of successful ones once all
// have completed.
uint64_t send_with_pauses(Jetty& jetty, const Imported& to, uint64_t count, unsigned seed,
                          uint64_t first = 0, uint64_t step = 1) {
  Prng prng(seed);
  const auto bytes = bytes_like(20, 1);
  uint64_t done = 0;
  uint64_t ended = 0;
  const auto take = [&](Duration limit) {
    const auto completions = jetty.wait(limit);
    ended += completions.size();
    for (const Completion& completion : completions) done += completion.ok();
    return !completions.empty();
  };
  for (uint64_t i = 0; i < count;) {
    const Work work = write(bytes, to.segment).to(to.jetty).immediate(first + i * step);
    if (jetty.post(work) == 1) {
      ++i;
    } else if (!take(patience)) {
      return done;
    }
    // Some works are posted alone, some in batches.
    if (prng.below(16) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(prng.below(400)));
  }
  while (ended < count && take(patience)) {
  }
  return done;
}

TEST_CASE("a thread that sleeps at a descriptor gets each message, and is never left asleep") {
  constexpr uint64_t messages = 10'000;
  for (const std::string_view driver : media) {
    for (const Threads threads : {Threads::automatic, Threads::served}) {
      const Medium medium(driver);
      Side owner = Side::open(medium.text(), {.threads = threads});
      Side user = Side::open(medium.text());
      const Imported remote = user.device.import(owner.line()).value();
      uint64_t done = 0;
      std::thread sender([&] { done = send_with_pauses(user.jetty, remote, messages, 7); });
      uint64_t sleeps = 0;
      const uint64_t fresh = receive_asleep(owner.jetty, messages, sleeps);
      sender.join();
      INFO(driver << " " << sleeps << " sleeps");
      CHECK(fresh == messages);
      CHECK(done == messages);
      CHECK(sleeps > 0);
    }
  }
}

TEST_CASE("a thread that sleeps at a descriptor is woken by another process") {
  constexpr uint64_t messages = 10'000;
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    int lines[2];
    REQUIRE(pipe(lines) == 0);
#if defined(__SANITIZE_THREAD__)
    break;  // the thread sanitizer starts no thread in a child
#endif
    const pid_t child = fork();
    if (child == 0) {
      std::string line(4096, 0);
      const ssize_t got = ::read(lines[0], line.data(), line.size());
      line.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
      Side user = Side::open(medium.text());
      const Imported remote = user.device.import(line).value();
      const uint64_t done = send_with_pauses(user.jetty, remote, messages, 8);
      user.device.close();
      _exit(done == messages ? 0 : 1);
    }
    Side owner = Side::open(medium.text());
    const std::string line = owner.line();
    REQUIRE(::write(lines[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    uint64_t sleeps = 0;
    CHECK(receive_asleep(owner.jetty, messages, sleeps) == messages);
    CHECK(sleeps > 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    for (const int end : lines) close(end);
  }
}

TEST_CASE("several Jetties and a Jfr that share a completion queue have one descriptor") {
  constexpr uint64_t jetty_count = 3;
  constexpr uint64_t each = 1000;
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text());
    Jfc jfc = owner.device.jfc(512).value();
    Jfr jfr = owner.device.jfr({.receives = 32, .completions = &jfc}).value();
    std::vector<Jetty> jetties;
    std::vector<Imported> targets;
    const Imported memory = user.device.import(owner.line()).value();
    for (uint64_t i = 0; i < jetty_count; ++i) {
      const JettyOptions own{.berths = 1, .receives = 32, .completions = &jfc};
      const JettyOptions shared{.berths = 1, .completions = &jfc, .receives_from = &jfr};
      jetties.push_back(owner.device.jetty(i == 0 ? shared : own).value());
      targets.push_back(user.device.import(jetties.back().descriptor()).value());
      targets.back().segment = memory.segment;
    }
    const int descriptor = jfc.fd().value();
    CHECK(jfr.fd().value() == descriptor);
    CHECK(jetties[1].fd().value() == descriptor);
    CHECK(owner.jetty.fd().value() != descriptor);
    std::atomic<uint64_t> done{0};
    std::vector<std::thread> senders;
    for (uint64_t i = 0; i < jetty_count; ++i) {
      senders.emplace_back([&, i] {
        Jetty jetty = user.device.jetty().value();
        done += send_with_pauses(jetty, targets[i], each, static_cast<unsigned>(i), i, jetty_count);
      });
    }
    uint64_t sleeps = 0;
    CHECK(receive_asleep(jfc, jetty_count * each, sleeps) == jetty_count * each);
    for (std::thread& sender : senders) sender.join();
    CHECK(done == jetty_count * each);
  }
}

TEST_CASE("one thread sleeps at the descriptors of several queues while another one waits") {
  constexpr uint64_t each = 1000;
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text());
    Side user = Side::open(medium.text());
    const Imported memory = user.device.import(owner.line()).value();
    std::vector<Jetty> jetties;
    std::vector<Imported> targets;
    Epoll epoll;
    for (uint64_t i = 0; i < 3; ++i) {
      jetties.push_back(owner.device.jetty({.berths = 1, .receives = 32}).value());
      targets.push_back(user.device.import(jetties.back().descriptor()).value());
      targets.back().segment = memory.segment;
      if (i < 2) epoll.add(jetties.back().fd().value(), i);
    }
    uint64_t waited = 0;
    std::thread waiter([&] {
      while (waited < each) {
        const auto some = jetties[2].wait(patience);
        if (some.empty()) break;
        waited += some.size();
      }
    });
    std::vector<std::thread> senders;
    for (uint64_t i = 0; i < 3; ++i) {
      senders.emplace_back([&, i] {
        Jetty jetty = user.device.jetty().value();
        send_with_pauses(jetty, targets[i], each, static_cast<unsigned>(i));
      });
    }
    std::array<Completion, 4> out;
    uint64_t arrived = 0;
    for (bool woken = true; woken && arrived < 2 * each;) {
      bool armed = true;
      for (Jetty* const jetty : {&jetties[0], &jetties[1]}) {
        while (const size_t some = jetty->poll(out)) arrived += some;
        armed = jetty->arm() && armed;
      }
      if (armed && arrived < 2 * each) woken = epoll.wait() >= 0;
    }
    for (std::thread& sender : senders) sender.join();
    waiter.join();
    CHECK(arrived == 2 * each);
    CHECK(waited == each);
  }
}

TEST_CASE("arm reports that completions are there, and a descriptor is signalled once") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side peer = Side::open(medium.text());
    Side side = Side::open(medium.text());
    const Imported remote = side.device.import(peer.line()).value();
    CHECK_FALSE(side.jetty.arm());  // there is no descriptor yet
    const int descriptor = side.jetty.fd().value();
    CHECK(side.jetty.fd().value() == descriptor);
    CHECK_FALSE(readable(descriptor, 0));
    const auto bytes = bytes_like(10, 1);
    std::array<Completion, 4> out;
    for (int round = 0; round < 20; ++round) {
      REQUIRE(side.jetty.arm());
      REQUIRE(side.jetty.arm());
      REQUIRE(side.jetty.post(write(bytes, remote.segment)) == 1);
      // The service thread may still be about to signal for the completion that the wait before has
      // taken.
      do REQUIRE(readable(descriptor));
      while (side.jetty.arm());
      REQUIRE(side.jetty.poll(out) == 1);
      CHECK(out[0].ok());
      REQUIRE(side.jetty.arm());
      CHECK_FALSE(readable(descriptor, 0));
      // A thread that waits is woken by the wait itself, and the descriptor stays unreadable.
      REQUIRE(side.jetty.post(write(bytes, remote.segment)) == 1);
      CHECK(side.jetty.wait(patience).size() == 1);
    }
  }
}

TEST_CASE(
    "an armed descriptor is signalled also when a poll of its own thread brings the completion") {
  for (const std::string_view driver : media) {
    INFO(driver);
    const Medium medium(driver);
    Side peer = Side::open(medium.text());
    Side side = Side::open(medium.text());
    const Imported remote = peer.device.import(side.line()).value();
    const int descriptor = side.jetty.fd().value();
    const auto bytes = bytes_like(8, 1);
    Completion completion;
    for (uint64_t round = 0; round < 100; ++round) {
      REQUIRE(side.jetty.arm());
      const Work work = write(bytes, remote.segment);
      REQUIRE(peer.jetty.post(Work(work).to(remote.jetty).immediate(round)) == 1);
      // These polls take no completion, because they have no room for one.
      for (int looks = 0; looks < 20; ++looks) {
        (void)peer.jetty.poll({&completion, 1});
        REQUIRE(side.jetty.poll({&completion, 0}) == 0);
      }
      REQUIRE(readable(descriptor));
      REQUIRE(side.jetty.poll({&completion, 1}) == 1);
      CHECK(completion.immediate == round);
    }
  }
}

TEST_CASE("closing a device makes its descriptors readable, even if nothing is outstanding") {
  for (const std::string_view driver : media) {
    for (const Threads threads : {Threads::automatic, Threads::served}) {
      const Medium medium(driver);
      Side side = Side::open(medium.text(), {.threads = threads});
      Jfc lonely = side.device.jfc(8).value();
      Jfc not_asked = side.device.jfc(8).value();
      const int descriptor = side.jetty.fd().value();
      const int other = lonely.fd().value();
      REQUIRE(side.jetty.arm());
      REQUIRE(lonely.arm());
      std::thread closer([&] {
        std::this_thread::sleep_for(20ms);
        side.device.close();
      });
      CHECK(readable(descriptor));
      CHECK(readable(other));
      closer.join();
      std::array<Completion, 1> out;
      CHECK_FALSE(side.jetty.arm());
      REQUIRE(side.jetty.poll(out) == 1);
      CHECK(out[0].status == Status::closed);
      CHECK_FALSE(side.jetty.arm());
      CHECK(side.jetty.fd().value() == descriptor);
      CHECK(not_asked.fd().status() == Status::closed);
    }
  }
}

TEST_CASE("a thread that arms while another thread closes is not left asleep") {
  for (int round = 0; round < 40; ++round) {
    Side side = Side::open("udp:");
    const int descriptor = side.jetty.fd().value();
    std::atomic<bool> closing{false};
    std::thread closer([&] {
      closing = true;
      side.device.close();
    });
    while (!closing) std::this_thread::yield();
    std::array<Completion, 4> out;
    bool told = false;
    bool woken = true;
    while (!told && woken) {
      while (!told && side.jetty.poll(out) > 0) told = out[0].status == Status::closed;
      if (!told && side.jetty.arm()) woken = readable(descriptor);
    }
    closer.join();
    CHECK(told);
  }
}

TEST_CASE(
    "an inlined or simulated device refuses descriptors, because no thread would signal them") {
  Side inlined = Side::open("udp:", {.threads = Threads::inlined});
  Side simulated = Side::open("sim:descriptors");
  for (const auto& [side, cure] :
       {std::pair(&inlined, "Threads::automatic"), {&simulated, "wait"}}) {
    const auto refused = side->jetty.fd();
    REQUIRE(refused.status() == Status::unsupported);
    CHECK(refused.error().message.find(cure) != std::string::npos);
    CHECK_FALSE(side->jetty.arm());
  }
}

TEST_CASE("a child of fork can arm no queue and changes no descriptor of its parent") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side peer = Side::open(medium.text());
    Side side = Side::open(medium.text());
    const Imported remote = side.device.import(peer.line()).value();
    const int descriptor = side.jetty.fd().value();
    REQUIRE(side.jetty.arm());
    const pid_t child = fork();
    if (child == 0) {
      const bool armed = side.jetty.arm();
      const bool refused = side.jetty.fd().status() == Status::forked;
      const uint64_t one = 1;
      // The child's descriptor of the same number may be another file, so the child does not have
      // the parent's.
      const bool written = ::write(descriptor, &one, sizeof one) == sizeof one;
      { const Side goes = std::move(side); }
      _exit(!armed && refused && written ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK_FALSE(readable(descriptor, 0));
    const auto bytes = bytes_like(10, 1);
    REQUIRE(side.jetty.post(write(bytes, remote.segment)) == 1);
    CHECK(readable(descriptor));
    CHECK(collect(side.jetty, 1).size() == 1);
  }
}

// Counts only eventfds, because the C library opens and closes files of its own.
size_t open_eventfds() {
  size_t count = 0;
  DIR* const all = opendir("/proc/self/fd");
  while (const dirent* const one = readdir(all)) {
    std::array<char, 32> what{};
    const ssize_t bytes = readlinkat(dirfd(all), one->d_name, what.data(), what.size());
    const std::string_view text(what.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
    count += text == "anon_inode:[eventfd]";
  }
  closedir(all);
  return count;
}

TEST_CASE("descriptors are closed with their queues") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    { const Side first = Side::open(medium.text()); }
    const size_t before = open_eventfds();
    for (int round = 0; round < 3; ++round) {
      Side side = Side::open(medium.text());
      REQUIRE(side.jetty.fd().ok());
      const size_t with_device = open_eventfds();
      for (int i = 0; i < 20; ++i) {
        Jfc jfc = side.device.jfc(64).value();
        Jetty jetty = side.device.jetty({.berths = 4, .completions = &jfc}).value();
        Jfr jfr = side.device.jfr({.receives = 4}).value();
        REQUIRE(jetty.fd().value() == jfc.fd().value());
        REQUIRE(jfr.fd().ok());
        CHECK(jfc.arm());
        CHECK(jfr.arm());
        CHECK(open_eventfds() == with_device + 2);
      }
      CHECK(open_eventfds() == with_device);
    }
    CHECK(open_eventfds() == before);
  }
}

}  // namespace
}  // namespace urma::test
