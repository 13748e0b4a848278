// SPDX-License-Identifier: Apache-2.0
#include "urma/observe.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Returns only the devices of this process, because other tests have devices, too.
std::vector<ObservedDevice> seen_here() {
  std::vector<ObservedDevice> out;
  Observed all = observe_devices().value();
  for (ObservedDevice& device : all.devices) {
    if (device.pid == static_cast<uint64_t>(getpid())) out.push_back(std::move(device));
  }
  return out;
}

// Waits until the page of this process's only device satisfies `what`. Returns false after a
// timeout.
bool comes_to(const std::function<bool(const ObservedDevice&)>& what) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const auto seen = seen_here();
    if (seen.size() == 1 && what(seen[0])) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

TEST_CASE("other processes see a device's counters, also while it sleeps, until it is closed") {
  for (const Threads threads : {Threads::automatic, Threads::served}) {
    for (const std::string_view driver : media) {
      const Medium medium(driver);
      INFO(driver);
      Device device = open(medium.text(), {.threads = threads}).value();
      Segment segment = device.allocate(1 << 16).value();
      Jetty jetty = device.jetty().value();
      const auto bytes = bytes_like(5000, 1);
      for (int i = 0; i < 10; ++i) {
        REQUIRE(run_one(jetty, write(bytes, segment.local())).ok());
      }
      const Statistics stats = device.stats().value();
      // The application makes no further calls, and the counters are reported nevertheless.
      CHECK(comes_to([&](const ObservedDevice& seen) {
        return *seen.find("works") == 10 && *seen.find("completions") == stats.completions &&
               *seen.find("segments") == 1;
      }));
      const ObservedDevice seen = seen_here().at(0);
      CHECK(seen.device == medium.text());
      CHECK(seen.endpoint == to_string(device.endpoint()));
      CHECK(device.description().starts_with(seen.device + ": " + seen.description));
      // A sleeping device does not report, because each report would wake a thread unnecessarily.
      CHECK(comes_to([&](const ObservedDevice& before) {
        std::this_thread::sleep_for(250ms);
        return seen_here().at(0).reports == before.reports;
      }));
      // In a window no pass is needed for such a work.
      REQUIRE(run_one(jetty, write(std::span(bytes).first(8), segment.local())).ok());
      CHECK(comes_to([&](const ObservedDevice& after) { return *after.find("works") == 11; }));
      device.close();
      CHECK(seen_here().empty());
    }
  }
}

// Returns the page of the device with this address.
std::optional<ObservedDevice> page_of(const Device& device) {
  for (ObservedDevice& seen : seen_here()) {
    if (seen.endpoint == to_string(device.endpoint())) return std::move(seen);
  }
  return std::nullopt;
}

TEST_CASE("other processes see the Jetties, queues and segments of a device") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    INFO(driver);
    Device device = open(medium.text()).value();
    Jfc jfc = device.jfc(256).value();
    Jfr jfr = device.jfr({.receives = 16, .completions = &jfc}).value();
    const JettyOptions options{
        .berths = 32, .weight = 3, .urgent = true, .completions = &jfc, .receives_from = &jfr};
    Jetty shares = device.jetty(options).value();
    Jetty sends = device.jetty({.berths = 8}).value();
    JettyGroup group = device.jetty_group().value();
    REQUIRE(group.add(shares));
    {
      const Jetty destroyed = device.jetty({.berths = 1}).value();
      REQUIRE(group.add(destroyed));
    }
    Segment segment = device.allocate(5000, Rights::read).value();
    CHECK(comes_to([&](const ObservedDevice& seen) {
      return seen.objects && seen.objects->jetties.size() == 4 && !seen.objects->segments.empty();
    }));
    ObservedObjects seen = seen_here().at(0).objects.value();
    const auto find = [&](JettyId id) {
      return *std::ranges::find(seen.jetties, number(id), &ObservedJetty::id);
    };
    CHECK(find(jfr.id()).kind == "jfr");
    CHECK(find(jfr.id()).receives == 16);
    CHECK(find(shares.id()).kind == "jetty");
    CHECK(find(shares.id()).jfr == number(jfr.id()));
    CHECK(find(shares.id()).jfc == find(jfr.id()).jfc);
    CHECK(find(shares.id()).receives_jfc == find(jfr.id()).jfc);
    CHECK((find(shares.id()).sends == 32 && find(shares.id()).weight == 3));
    CHECK((find(shares.id()).urgent && !find(sends.id()).urgent));
    CHECK(find(sends.id()).kind == "jfs");
    CHECK(find(sends.id()).jfc != find(jfr.id()).jfc);
    const ObservedJetty grouped = find(without_group_bit(group.id()));
    CHECK((grouped.kind == "jetty_group" && grouped.receives == 1));
    CHECK(seen.jfcs.size() == 2);
    CHECK(seen.segments[0].bytes == 5000);
    CHECK(seen.segments[0].token_id == number(segment.local().token_id));
    CHECK(seen.segments[0].rights == Rights::read);
    CHECK((seen.more_jetties == 0 && seen.more_segments == 0 && !seen.more_jfcs));

    REQUIRE(sends.flush());
    CHECK(comes_to([&](const ObservedDevice& now) {
      seen = now.objects.value();
      return find(sends.id()).state == "error";
    }));
    REQUIRE(segment.unregister());
    CHECK(comes_to([](const ObservedDevice& now) { return now.objects->segments.empty(); }));
  }
}

TEST_CASE("a page says how many Jetties and segments it has no room for") {
  Device device = open("udp:").value();
  std::vector<Jetty> jetties;
  std::vector<Segment> segments;
  for (int i = 0; i < 60; ++i) {
    jetties.push_back(device.jetty({.berths = 2}).value());
    segments.push_back(device.allocate(64).value());
  }
  CHECK(comes_to([](const ObservedDevice& seen) {
    return seen.objects && seen.objects->jetties.size() == 48 &&
           seen.objects->segments.size() == 32 && seen.objects->more_jetties == 12 &&
           seen.objects->more_segments == 28 && seen.objects->more_jfcs;
  }));
}

// Two devices, between which works run. Returns the channels of the first one's page.
std::vector<ObservedChannel> channels_between(Side& from, const Side& to) {
  const auto import = from.device.import(to.line()).value();
  const auto bytes = bytes_like(5000, 1);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    REQUIRE(run_one(from.jetty, write(bytes, import.segment)).ok());
    const auto seen = page_of(from.device);
    REQUIRE((seen && seen->channels));
    if (!seen->channels->shown.empty()) return seen->channels->shown;
  }
  return {};
}

TEST_CASE("a page shows which congestion control each channel uses, and why") {
  struct {
    const char* device;
    const char* peer;
    const char* asked;
    const char* used;
    const char* why;  // a part of it
  } const cases[] = {
      {"udp:?ecn=yes", "udp:?ecn=yes", "ldcp", "ldcp", ""},
      {"udp:?ecn=yes", "udp:", "ldcp", "aimd", "the peer does not report what ldcp needs"},
      {"udp:", "udp:", "dcqcn", "aimd", "dcqcn needs ECN marks"},
      {"udp:", "udp:", "caqm_r", "caqm_r", ""},
      {"udp:?ecn=yes", "udp:", "caqm_r", "aimd", "the peer does not report what caqm_r needs"},
      {"udp:", "udp:", "caqm_w", "caqm_r", "caqm_w needs switches"},
      {"udp:?ecn=yes", "udp:", "caqm_w", "aimd", "caqm_w needs switches"},
      {"udp:?ecn=yes", "udp:?ecn=yes", "dcqcn", "dcqcn", ""}};
  for (const auto& one : cases) {
    INFO(one.device << " to " << one.peer << ", " << one.asked);
    Side from = Side::open(one.device, {.congestion = one.asked});
    const Side to = Side::open(one.peer);
    const auto shown = channels_between(from, to);
    REQUIRE(shown.size() == 1);
    const ObservedChannel& channel = shown[0];
    CHECK(channel.peer == to_string(to.device.endpoint()));
    CHECK(channel.from == to_string(from.device.endpoint()));
    CHECK(channel.state == "up");
    CHECK(channel.congestion == one.used);
    CHECK(channel.why.find(one.why) != channel.why.npos);
    CHECK(channel.why.empty() == (*one.why == '\0'));
    CHECK(channel.window_bytes.value_or(0) > 0);
    CHECK(channel.inflight_bytes.has_value());
    const std::string_view used = one.used;
    CHECK(channel.bytes_per_second.has_value() == (used == "dcqcn" || used == "caqm_r"));
    CHECK((channel.rtt && *channel.rtt > Duration{} && channel.least_rtt <= channel.rtt));
    CHECK((channel.age && channel.unheard && channel.unheard <= channel.age));
    CHECK(page_of(from.device)->congestion == one.asked);
  }
}

TEST_CASE("a page shows what a channel sent again, and that its peer was not ready") {
  struct {
    const char* device;
    const char* peer;
    bool loses;
  } const cases[] = {{"fault(loss=20%):udp:", "udp:", true}, {"cxl:", "cxl:", false}};
  for (const auto& one : cases) {
    INFO(one.device);
    const auto bytes = bytes_like(5000, 1);  // outlives the device, whose work does not end
    const Medium medium(one.peer);
    Side from = Side::open(one.loses ? one.device : medium.text());
    Side to = Side::open(medium.text());
    const auto import = from.device.import(to.line()).value();
    REQUIRE(from.jetty.post(send(bytes, import.jetty)) == 1);
    std::optional<ObservedChannel> channel;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
      REQUIRE(from.jetty.wait(1ms).empty());
      const auto seen = page_of(from.device);
      REQUIRE((seen && seen->channels));
      if (seen->channels->shown.empty()) continue;
      channel = seen->channels->shown[0];
      const bool sent_again = channel->retransmitted.value_or(0) > 0;
      if (channel->not_ready.value_or(0) > 0 && sent_again == one.loses) break;
    }
    REQUIRE(channel);
    CHECK(channel->not_ready.value_or(0) > 0);
    CHECK((channel->retransmitted.value_or(0) > 0) == one.loses);
    CHECK(channel->spurious.has_value() == one.loses);
  }
}

TEST_CASE("a page has a row for each path of a channel, and for channels that lose nothing") {
  Side from = Side::open("paths():udp:127.0.0.1+udp:127.0.0.2");
  const Side to = Side::open("paths():udp:127.0.0.3+udp:127.0.0.4");
  const auto paths = channels_between(from, to);
  REQUIRE(paths.size() == 2);
  for (unsigned path = 0; path < 2; ++path) {
    CHECK(paths[path].path == path);
    CHECK(paths[path].from == to_string(from.device.endpoints()[path]));
    CHECK(paths[path].peer == to_string(to.device.endpoints()[path]));
    CHECK(paths[path].congestion == "aimd");
    CHECK((paths[path].window_bytes && paths[path].sent && paths[path].lost));
  }
  const Medium medium("cxl:");
  Side mapped = Side::open(medium.text(), {.congestion = "ldcp"});
  const auto lossless = channels_between(mapped, Side::open(medium.text()));
  REQUIRE(lossless.size() == 1);
  CHECK(lossless[0].congestion == "none");
  CHECK(lossless[0].why.find("loses nothing") != std::string::npos);
  CHECK_FALSE(lossless[0].window_bytes);
}

TEST_CASE("an inlined device reports while it is polled, often while it has much to do") {
  Side side = Side::open("udp:", {.threads = Threads::inlined});
  const auto bytes = bytes_like(100, 1);
  uint64_t done = 0;
  const auto works_for = [&](Duration time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
      REQUIRE(side.jetty.post(write(bytes, side.segment.local())) == 1);
      done += collect(side.jetty, 1).size();
    }
  };
  works_for(50ms);
  const uint64_t before = seen_here().at(0).reports;
  works_for(1s);
  const uint64_t reports = seen_here().at(0).reports - before;
  CHECK(reports >= 2);   // even on a busy machine
  CHECK(reports <= 11);  // more reports would cost time
  std::array<Completion, 1> out;
  CHECK(comes_to([&](const ObservedDevice& seen) {
    (void)side.jetty.poll(out);  // polling runs the device
    return *seen.find("works") == done;
  }));
}

TEST_CASE("a device with observable = false has no page, and neither has a simulated device") {
  const Device hidden = open("udp:", {.observable = false}).value();
  const Device simulated = open("sim:here").value();
  CHECK(seen_here().empty());
  CHECK(hidden.description().find("urma_stat") == std::string::npos);
}

TEST_CASE("a child of fork neither keeps its parent's page nor removes it") {
  std::optional<Side> side = Side::open("udp:");
  REQUIRE(seen_here().size() == 1);
  int running[2];
  REQUIRE(pipe(running) == 0);
  const pid_t child = fork();
  if (child == 0) {
    side.reset();
    [[maybe_unused]] const ssize_t told = ::write(running[1], "", 1);
    _exit(static_cast<int>(sleep(60)));
  }
  char byte = 0;
  REQUIRE(::read(running[0], &byte, 1) == 1);
  for (const int end : running) close(end);
  CHECK(seen_here().size() == 1);
  side.reset();
  CHECK(seen_here().empty());
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

#if !defined(__SANITIZE_THREAD__)  // the thread sanitizer starts no thread in a child
// Opens a device as a user whose runtime directory was created by another user.
int opens_unseen(uid_t user) {
  if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 2;
  const Result<Device> device = open("udp:");
  if (!device) return 3;
  const std::string description = device->description();
  if (description.find("urma_stat does not show this device") == description.npos) return 4;
  if (description.find("Fix: ") == description.npos) return 5;
  return observe_devices().status() == Status::permission_denied ? 0 : 6;
}

TEST_CASE("a device that cannot publish its page opens nevertheless, and says so") {
  if (geteuid() != 0) return;  // only root can act as another user
  // Several copies of this test may run at once: each uses a user ID of its own.
  const uid_t user = 1'000'000 + static_cast<uid_t>(getpid());
  const std::string directory = "/dev/shm/urma-devices-" + std::to_string(user);
  REQUIRE(mkdir(directory.c_str(), 0700) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(opens_unseen(user));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  rmdir(directory.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace urma::test
