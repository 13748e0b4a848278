// SPDX-License-Identifier: Apache-2.0
// Processes in one window: killed repeatedly beside a pair that must not be affected, in pause()
// while peers write to and read from them, and idle among many.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "tests/drivers/window_file.h"
#include "tests/fresh_seed.h"
#include "tests/processes/bystanders.h"

namespace urma::test {
namespace {

uint64_t memory_of(const WindowFile& window) {
  struct stat about {};
  stat(window.path().c_str(), &about);
  return static_cast<uint64_t>(about.st_blocks) * 512;
}

// Starts a process, writes to it, and kills it while works to it are outstanding.
void kill_target(Side& here, const Pair& calm, const std::string& device, Duration after) {
  Child target(serve(device, "doomed"));
  REQUIRE(target.said() == "ready");
  Traffic traffic(here.jetty, here.device.import("urma://localhost/doomed").value());
  for (const Time begun = read_clock(); since(begun) < after;) traffic.turn();
  target.end(SIGKILL);
  CHECK(calm.goes_on());
  for (const Time killed = read_clock(); since(killed) < 20ms;) traffic.turn();
  traffic.finish();
  CHECK(traffic.all_completed());
}

// Starts a process that writes to this device, and kills it while its works are outstanding.
void kill_writer(Side& here, const Pair& calm, const std::string& device, Duration after) {
  Child writer({URMA_TEST_PEER, device, "write", "doomed", "urma://localhost/victim", "0"});
  uint64_t arrivals = 0;
  for (const Time begun = read_clock(); since(begun) < after || arrivals == 0;) {
    REQUIRE(since(begun) < patience);
    for (const Completion& arrival : here.jetty.wait(10ms)) {
      REQUIRE(arrival.ok());
      ++arrivals;
    }
  }
  writer.end(SIGKILL);
  CHECK(calm.goes_on());
  while (!here.jetty.wait(50ms).empty()) {
  }
}

// Starts a process, finds it by its name, and completes a work to it.
void first_operation(Side& here, const std::string& device) {
  Child phoenix(serve(device, "phoenix"));
  REQUIRE(phoenix.said() == "ready");
  const Imported remote = here.device.import("urma://localhost/phoenix").value();
  const auto bytes = bytes_like(1000, 1);
  REQUIRE(run_one(here.jetty, write(bytes, remote.segment)).ok());
}

TEST_CASE("processes are killed repeatedly, and a pair in the same window continues") {
  const WindowFile window("rounds");
  const std::string device = window.device("?size=64M");
  Side here = Side::open(device, {}, {.berths = 64, .receives = 256});
  here.device.publish("victim", here.segment, here.jetty).value();
  Pair calm(device, serve(device, "calm"));
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  const auto moment = [&] { return 1ms + Duration(static_cast<int64_t>(prng.below(30'000'000))); };
  // Objects that a process creates only once must exist before descriptors and memory are counted.
  first_operation(here, device);
  kill_target(here, calm, device, 50ms);
  kill_writer(here, calm, device, 50ms);
  first_operation(here, device);
  const size_t descriptors = entries_of("/proc/self/fd");
  const uint64_t memory = memory_of(window);
  for (int round = 0; round < rounds(); ++round) {
    INFO("round " << round);
    (round % 2 == 0 ? kill_target : kill_writer)(here, calm, device, moment());
    first_operation(here, device);
  }
  CHECK(entries_of("/proc/self/fd") == descriptors);
  CHECK(calm.end());
  CHECK(entries_of("/dev/shm", "urma-test-" + std::to_string(getpid())) == 1);
  CHECK(memory_of(window) <= memory + 8 * drivers::cxl::ring_bytes);
}

TEST_CASE("works of a pair for which there is no ring end as no_resources, and others continue") {
  const WindowFile window("few");
  Side first = Side::open(window.device());  // 1 MiB: rings for one pair
  std::optional<Side> second = Side::open(window.device(""));
  Side third = Side::open(window.device(""));
  const auto bytes = bytes_like(1000, 1);
  const auto write_to = [&](Side& from, const Imported& to) {
    REQUIRE(from.jetty.post(write(bytes, to.segment)) == 1);
    const auto completions = collect(from.jetty, 1);
    return completions.empty() ? Status::would_block : completions[0].status;
  };
  CHECK(write_to(*second, second->device.import(first.line()).value()) == Status::ok);
  const Imported to_first = third.device.import(first.line()).value();
  CHECK(write_to(third, to_first) == Status::no_resources);
  CHECK(write_to(*second, second->device.import(first.line()).value()) == Status::ok);
  CHECK(write_to(first, first.device.import(second->line()).value()) == Status::ok);
  second.reset();
  // The attempt in progress may end as the first one did.
  Status status = write_to(third, to_first);
  if (status == Status::no_resources) status = write_to(third, to_first);
  CHECK(status == Status::ok);
}

TEST_CASE("a process writes and reads the memory of another one that is in pause()") {
  const size_t bytes = std::getenv("URMA_TEST_ROUNDS") != nullptr ? size_t{1} << 30 : 256 << 20;
  constexpr size_t at_once = 16 << 20;
  // The window belongs to this user, and other copies of this test may use it at the same time.
  const std::string name = "sleeping-" + std::to_string(getpid());
  Child sleeper({URMA_TEST_PEER, "cxl:", "pause", name, std::to_string(bytes)});
  REQUIRE(sleeper.said() == "ready");
  Side here = Side::open("cxl:");
  const Imported remote = here.device.import("urma://localhost/" + name).value();
  REQUIRE(remote.segment.bytes >= bytes);
  std::vector<std::byte> back(at_once);
  for (size_t at = 0; at < bytes; at += at_once) {
    const auto data = bytes_like(at_once, static_cast<unsigned>(at / at_once));
    REQUIRE(run_one(here.jetty, write(data, remote.segment, at)).ok());
  }
  for (size_t at = 0; at < bytes; at += at_once) {
    REQUIRE(run_one(here.jetty, read(back, remote.segment, at)).ok());
    REQUIRE(back == bytes_like(at_once, static_cast<unsigned>(at / at_once)));
  }
}

// The processor time and context switches of a process so far.
struct Used {
  double seconds = 0;
  uint64_t switches = 0;

  // Returns whether this is the use of an idle process in one second.
  bool is_nothing() const {
#if defined(__SANITIZE_THREAD__)  // the runtime of this sanitizer wakes up by itself
    return seconds < 0.01;
#else
    return seconds < 0.01 && switches < 10;
#endif
  }
};
Used used_by(pid_t process) {
  Used out;
  const std::string folder = "/proc/" + std::to_string(process);
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task")) {
    std::ifstream schedstat(task.path() / "schedstat");
    double nanoseconds = 0;
    schedstat >> nanoseconds;
    out.seconds += nanoseconds / 1e9;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      // Only voluntary switches count.
      constexpr std::string_view what = "voluntary_ctxt_switches:";
      if (line.starts_with(what)) out.switches += std::stoull(line.substr(what.size()));
    }
  }
  return out;
}

TEST_CASE("a process that is idle among a hundred peers uses no processor time") {
  const WindowFile window("idle");
  const std::string device = window.device("");
  Child idle({URMA_TEST_PEER, device, "pause", "idle", "1048576"});
  REQUIRE(idle.said() == "ready");
  std::vector<Side> peers;
  const auto bytes = bytes_like(100, 1);
  while (peers.size() < 100) {
    peers.push_back(Side::open(device, {.limits = {.jetties = 4, .peers = 8, .segments = 4}}));
    const Imported remote = peers.back().device.import("urma://localhost/idle").value();
    REQUIRE(run_one(peers.back().jetty, write(bytes, remote.segment)).ok());
  }
  // The process runs its engine until all peers have read its messages. On a busy machine, a
  // hundred service threads need some time for that.
  Used used;
  for (int second = 0; second < 10; ++second) {
    const Used before = used_by(idle.pid());
    std::this_thread::sleep_for(1s);
    const Used after = used_by(idle.pid());
    used = {.seconds = after.seconds - before.seconds,
            .switches = after.switches - before.switches};
    if (used.is_nothing()) break;
  }
  std::printf("idle among %zu peers for 1 s: %.3f ms of processor time, %llu context switches\n",
              peers.size(), used.seconds * 1e3, static_cast<unsigned long long>(used.switches));
  CHECK(used.is_nothing());
}

#if !defined(__SANITIZE_THREAD__)  // for this sanitizer, the mapping that replaces a cut window
                                   // looks like a racing write
TEST_CASE("when a window is cut off in the middle of traffic, all works end and devices close") {
  for (const uint64_t left : {uint64_t{0}, uint64_t{1} << 20}) {
    const WindowFile window("cut");
    const std::string device = window.device("?size=16M");
    Child target(serve(device, "lost"));
    std::optional<Side> here = Side::open(device);
    std::optional<Traffic> traffic;
    traffic.emplace(here->jetty, here->device.import("urma://localhost/lost").value());
    Time begun = read_clock();
    while (since(begun) < 50ms || traffic->completed() == 0) traffic->turn();
    window.cut(left);
    begun = read_clock();
    while (since(begun) < 100ms) traffic->turn();
    traffic->finish();
    CHECK(traffic->all_completed());
    CHECK(traffic->ended(Status::ok) > 0);
    CHECK(kill(target.pid(), 0) == 0);
    here.reset();
    // The cut did not kill the other process either.
    int status = 0;
    CHECK(waitpid(target.pid(), &status, WNOHANG) == 0);
  }
}
#endif

}  // namespace
}  // namespace urma::test
