// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/api/helpers.h"
#include "tests/drivers/io_ways.h"

namespace urma::test {
namespace {

// Returns the first fault that the child found, as its exit status; 0 if all is well.
int child_finds(Side& side, const Imported& remote) {
  const auto bytes = bytes_like(10, 1);
  if (side.jetty.post(write(bytes, remote.segment)) != 0) return 1;
  std::array<Completion, 4> out;
  if (side.jetty.poll(out) != 1 || out[0].status != Status::forked) return 2;
  const auto waited = side.jetty.wait(patience);
  if (waited.size() != 1 || waited[0].status != Status::forked) return 3;
  if (side.device.allocate(10).status() != Status::forked) return 4;
  if (side.jetty.flush().status() != Status::forked) return 5;
  if (side.device.publish("x", side.segment).status() != Status::forked) return 6;
  side.device.close();
#if !defined(__SANITIZE_THREAD__)
  // A device that the child opens works. (The thread sanitizer starts no thread in a child.)
  const Side own = Side::open("udp:");
#endif
  return 0;
}

TEST_CASE("calls of a child of fork return forked, and leave its parent's device unharmed") {
  // Other copies of this test may run at the same time.
  const std::string name = "fork-test-" + std::to_string(getpid());
  const std::string device = "udp:" + GENERATE(from_range(io_ways()));
  for (const Threads threads : {Threads::served, Threads::inlined}) {
    Side owner = Side::open(device);
    const bool profile = threads == Threads::inlined;
    Side side = Side::open(device, {.threads = threads, .profile = profile});
    side.device.publish(name, side.segment).value();
    const Imported remote = side.device.import(owner.line()).value();
    const auto bytes = bytes_like(5000, 2);
    REQUIRE(run_one(side.jetty, write(bytes, remote.segment)).ok());
    const pid_t child = fork();
    if (child == 0) {
      const int found = child_finds(side, remote);
      { const Side goes = std::move(side); }
      _exit(found);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(run_one(side.jetty, write(bytes, remote.segment, 9)).ok());
    CHECK(owner.device.import("urma://localhost/" + name, 1s).ok());
  }
}

TEST_CASE("an address is free when its device is closed, even if a child of fork still runs") {
  const std::string device = "udp:127.0.0.225" + GENERATE(from_range(io_ways()));
  std::optional<Side> side = Side::open(device);
  REQUIRE(side->device.endpoint().port == ub_port);
  // A child that has not run yet still has all descriptors of its parent, so wait until it runs.
  int running[2];
  REQUIRE(pipe(running) == 0);
  const pid_t child = fork();
  if (child == 0) {
    [[maybe_unused]] const ssize_t told = ::write(running[1], "", 1);
    _exit(static_cast<int>(sleep(60)));
  }
  char byte = 0;
  REQUIRE(::read(running[0], &byte, 1) == 1);
  for (const int end : running) close(end);
  side.reset();
  side = Side::open(device);
  CHECK(side->device.endpoint().port == ub_port);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

}  // namespace
}  // namespace urma::test
