// What happens when the system gives no more memory: an error, never an exception or an abort.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

size_t address_space() {
  size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) _exit(100);
  std::fclose(file);
  return pages * 4096;
}

// Lets this process have so much more address space than it has; SIZE_MAX: without limit.
void allow(size_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes == SIZE_MAX ? limit.rlim_max : address_space() + bytes;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(101);
}

bool fair(Status status) { return status == Status::ok || status == Status::no_resources; }

// Everything that allocates, as far as it comes.
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

TEST_CASE("open and all that is made of a device end in an error when memory is short") {
  CHECK(in_a_child(600 << 20, 10 << 20, [](size_t bytes) {
    // What a process opens once is not counted.
    static const bool once = urma::open("udp:").ok();
    const size_t before = descriptors();
    allow(bytes);
    const bool fine = use_device();
    allow(SIZE_MAX);
    return once && fine && descriptors() == before;
  }));
}

TEST_CASE("a Jetty for which there is no memory is refused, and the engine lives") {
  CHECK(in_a_child(40 << 20, 1 << 18, [](size_t bytes) {
    static std::optional<Device> device;
    if (!device) device = urma::open("udp:").value();
    allow(bytes);
    const bool fine = make_jetties(*device);
    allow(SIZE_MAX);
    return fine && device->jetty({.berths = 1}).ok();
  }));
}

TEST_CASE("an error says what to do about it when its text finds memory") {
  CHECK(in_a_child(0, 1, [](size_t) {
    auto device = urma::open("udp:").value();
    allow(64 << 20);
    const auto refused = device.jfc(1 << 22);
    return refused.status() == Status::no_resources &&
           refused.error().message.find("ulimit -v") != std::string::npos &&
           refused.error().message.find("Fix: ") != std::string::npos;
  }));
}

}  // namespace
}  // namespace urma::test
