// SPDX-License-Identifier: Apache-2.0
// EAL leaves the process as it was, and several devices share it. EAL is started once in this
// program, by whichever test comes first.

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>

#include "tests/catch.h"
#include "tests/dpdk/dpdk_ports.h"

namespace urma::test {
namespace {

// The state that a process may have set, and that a library must not change.
struct ProcessState {
  cpu_set_t processors{};
  sigset_t blocked{};
  sighandler_t pipe = nullptr;
  std::vector<sighandler_t> handlers;
  rlimit open_files{};

  static ProcessState now() {
    ProcessState state;
    pthread_getaffinity_np(pthread_self(), sizeof state.processors, &state.processors);
    pthread_sigmask(SIG_SETMASK, nullptr, &state.blocked);
    getrlimit(RLIMIT_NOFILE, &state.open_files);
    for (int number = 1; number < 65; ++number) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      state.handlers.push_back(action.sa_handler);
    }
    return state;
  }
  bool operator==(const ProcessState& other) const {
    if (!CPU_EQUAL(&processors, &other.processors) || handlers != other.handlers) return false;
    if (open_files.rlim_cur != other.open_files.rlim_cur) return false;
    for (int number = 1; number < 65; ++number) {
      if (sigismember(&blocked, number) != sigismember(&other.blocked, number)) return false;
    }
    return true;
  }
};

TEST_CASE("opening and closing ports leaves affinity, limits, signal mask and handlers") {
  rlimit fewer{};
  getrlimit(RLIMIT_NOFILE, &fewer);
  fewer.rlim_cur = std::min<rlim_t>(fewer.rlim_cur, 500);
  setrlimit(RLIMIT_NOFILE, &fewer);
  const ProcessState before = ProcessState::now();
  {
    PortPair ports(ring_end(0), ring_end(1));
    CHECK((ProcessState::now() == before));
    CHECK(reaches(ports));
  }
  CHECK((ProcessState::now() == before));
  {
    PortPair ports(vhost(), virtio_user());
    CHECK((ProcessState::now() == before));
    CHECK(reaches(ports));
    // The peer closes first: what the port then writes to its socket would raise SIGPIPE.
    ports.a.reset();
    ports.b.reset();
  }
  CHECK((ProcessState::now() == before));
  sigset_t pending;
  sigpending(&pending);
  CHECK_FALSE(sigismember(&pending, SIGPIPE));
  CHECK(lost_buffers() == 0);
}

TEST_CASE("threads that a program starts after EAL run on all its processors") {
  PortPair ports(ring_end(0), ring_end(1));
  const ProcessState here = ProcessState::now();
  std::thread([&] {
    cpu_set_t there;
    pthread_getaffinity_np(pthread_self(), sizeof there, &there);
    CHECK(CPU_EQUAL(&here.processors, &there));
  }).join();
}

TEST_CASE("many threads in turn may run a port") {
  PortPair ports(ring_end(0), ring_end(1));
  for (int i = 0; i < 300; ++i) {
    bool reached = false;
    std::thread([&] { reached = reaches(ports); }).join();
    REQUIRE(reached);
  }
  ports.a.reset();
  ports.b.reset();
  CHECK(lost_buffers() == 0);
}

TEST_CASE("a second device uses the same EAL, and cannot change its arguments") {
  PortPair ports(ring_end(0), ring_end(1));
  const auto other = try_open_port("dpdk:net_null0?ip=10.9.0.3/24&eal=-m 64");
  REQUIRE_FALSE(other.ok());
  CHECK(other.status() == Status::invalid_argument);
  CHECK(other.error().message.find("Fix: leave eal= out") != std::string::npos);
  CHECK(try_open_port("dpdk:net_null0?ip=10.9.0.3/24").ok());
}

TEST_CASE("a child of the process that started EAL cannot use it, and does no harm") {
  PortPair ports(ring_end(0), ring_end(1));
  const pid_t child = fork();
  if (child == 0) {
    const auto port = try_open_port("dpdk:net_null0?ip=10.9.0.3/24");
    ports.a.reset();
    ports.b.reset();
    _exit(port.status() == Status::forked ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(reaches(ports));
}

}  // namespace
}  // namespace urma::test
