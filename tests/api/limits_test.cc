// SPDX-License-Identifier: Apache-2.0
// When the system has run out of memory, descriptors, threads, bytes of a file or random numbers,
// calls return an error. They never throw, abort or raise a signal.

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>

#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"
#include "tests/refused_call.h"

namespace urma::test {
namespace {

size_t address_space() {
  size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) _exit(100);
  std::fclose(file);
  return pages * 4096;
}

// Limits the address space of this process to what it uses now plus `bytes`; SIZE_MAX means no
// limit.
void allow(size_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes == SIZE_MAX ? limit.rlim_max : address_space() + bytes;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(101);
}

bool fair(Status status) { return status == Status::ok || status == Status::no_resources; }

// Makes each call that allocates, until one fails.
bool use_device() {
  auto device = urma::open("udp:");
  if (!device) return fair(device.status());
  auto jfc = device->jfc(1 << 22);
  auto segment = device->allocate(8 << 20);
  if (!fair(jfc.status()) || !fair(segment.status())) return false;
  if (!segment) return true;
  auto imported = device->import(segment->descriptor());
  return fair(imported.status());
}

bool make_jetties(Device& device) {
  const auto jetty = device.jetty({.berths = 32'768, .receives = 32'768});
  const auto small = device.jetty({.berths = 100});
  return fair(jetty.status()) && fair(small.status());
}

// Runs `body(bytes)` in a child of its own with 0 to `most` bytes of address space left, in steps.
template <class Body>
bool in_a_child(size_t most, size_t step, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    for (size_t bytes = 0; bytes <= most; bytes += step) {
      if (!body(bytes)) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("open and each call that creates an object return an error when memory runs out") {
  CHECK(in_a_child(600 << 20, 10 << 20, [](size_t bytes) {
    // Descriptors that a process opens only once are not counted.
    static const bool once = urma::open("udp:").ok();
    const size_t before = descriptors();
    allow(bytes);
    const bool fine = use_device();
    allow(SIZE_MAX);
    return once && fine && descriptors() == before;
  }));
}

TEST_CASE("a Jetty for which there is no memory is refused, and the engine continues") {
  CHECK(in_a_child(40 << 20, 1 << 18, [](size_t bytes) {
    static std::optional<Device> device;
    if (!device) device = urma::open("udp:").value();
    allow(bytes);
    const bool fine = make_jetties(*device);
    allow(SIZE_MAX);
    return fine && device->jetty({.berths = 1}).ok();
  }));
}

TEST_CASE("an error says how to fix it if there is memory for its text") {
  CHECK(in_a_child(0, 1, [](size_t) {
    auto device = urma::open("udp:").value();
    allow(64 << 20);
    const auto refused = device.jfc(1 << 22);
    return refused.status() == Status::no_resources &&
           refused.error().message.find("ulimit -v") != std::string::npos &&
           refused.error().message.find("Fix: ") != std::string::npos;
  }));
}

void limit(__rlimit_resource which, rlim_t most) {
  rlimit limits{};
  getrlimit(which, &limits);
  limits.rlim_cur = std::min(most, limits.rlim_max);
  if (setrlimit(which, &limits) != 0) _exit(102);
}

template <class Value>
bool says_why(const Result<Value>& result) {
  if (result.ok()) return true;
  return result.error().message.find("Fix: ") != std::string::npos;
}

// Publishes and imports until a call fails. A failure says why.
bool use_names(const std::string& text) {
  auto device = urma::open(text);
  if (!device) return says_why(device);
  auto segment = device->allocate(1 << 16);
  if (!segment) return says_why(segment);
  const auto jetty = device->jetty();
  if (!jetty) return says_why(jetty);
  const std::string name = "limits-" + std::to_string(getpid());
  return says_why(device->publish(name, *segment)) &&
         says_why(device->import("urma://localhost/" + name, 1ms));
}

TEST_CASE("an error says that the process may have no more descriptors") {
  const WindowFile window("descriptors");
  for (const std::string& text : {std::string("udp:"), window.device()}) {
    INFO(text);
    CHECK(in_a_child(24, 1, [&](size_t more) {
      // The first call opens the descriptors that a process needs once; later calls do not.
      static const size_t before = descriptors();
      limit(RLIMIT_NOFILE, before - 1 + more);
      const bool fine = use_names(text) && (more < 24 || urma::open(text).ok());
      limit(RLIMIT_NOFILE, RLIM_INFINITY);
      return fine;
    }));
  }
}

TEST_CASE("an error says that the process may have no more threads") {
  const WindowFile window("threads");
  for (const std::string& text : {std::string("udp:"), window.device()}) {
    INFO(text);
    CHECK(in_a_child(0, 1, [&](size_t) {
      // Root may start any number of threads.
      if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(0);
      limit(RLIMIT_NPROC, 0);
      const auto refused = urma::open(text);
      const bool told = refused.status() == Status::no_resources && says_why(refused);
      return told && urma::open(text, {.threads = Threads::inlined}).ok();
    }));
    unlink(window.path().c_str());
  }
}

TEST_CASE("an error says that the system refuses random numbers") {
  CHECK(in_a_child(0, 1, [](size_t) {
    if (!refuse_call(SYS_getrandom)) _exit(0);  // the kernel has no filters
    const auto refused = urma::open("udp:");
    return refused.status() == Status::permission_denied && says_why(refused);
  }));
}

TEST_CASE("exceeding the limit on file sizes is an error, and SIGXFSZ does not end the process") {
  const WindowFile window("file-size");
  CHECK(in_a_child(2 << 20, 1 << 16, [&](size_t most) {
    limit(RLIMIT_FSIZE, most);
    const auto opened = urma::open(window.device());
    const bool fair = most < (1 << 20) ? opened.status() == Status::no_resources : opened.ok();
    const bool fine = fair && says_why(opened) && use_names("udp:");
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    unlink(window.path().c_str());
    return fine;
  }));
}

TEST_CASE(
    "a segment whose file would be too large is refused or placed elsewhere, without SIGXFSZ") {
  const WindowFile window("segment-size");
  CHECK(in_a_child(2 << 20, 1 << 16, [&](size_t most) {
    auto device = urma::open(window.device("?size=16M&share=segment"));
    limit(RLIMIT_FSIZE, most);
    const auto segment = device ? device->allocate(1 << 20) : Result<Segment>(device.error());
    const bool fine = says_why(device) && fair(segment.status());
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    return fine;
  }));
}

TEST_CASE("a window for which there is no address space is refused") {
  const WindowFile window("space");
  CHECK(in_a_child(80 << 20, 4 << 20, [&](size_t bytes) {
    allow(bytes);
    auto device = urma::open(window.device("?size=16M"));
    const auto segment = device ? device->allocate(1 << 20) : Result<Segment>(device.error());
    const bool fine = says_why(device) && fair(segment.status());
    allow(SIZE_MAX);
    return fine;
  }));
}

}  // namespace
}  // namespace urma::test
