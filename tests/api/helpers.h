#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/loopback.h"
#include "tests/bytes.h"
#include "tests/catch.h"
#include "tests/completions.h"
#include "urma/urma.hpp"

namespace urma::test {

using namespace std::chrono_literals;

// Throws if the loopback interface is down, as in a new network namespace. Otherwise devices open
// there, but each work fails after 2 s, and a program of tests needs minutes to fail.
inline void require_loopback() {
  if (!loopback_is_down()) return;
  throw std::runtime_error("the interface lo is down. Fix: ip link set dev lo up");
}

// One device with a segment and a Jetty, and the line that describes both.
struct Side {
  Device device;
  Segment segment;
  Jetty jetty;

  static Side open(std::string_view text, const DeviceOptions& options = {},
                   const JettyOptions& jetty = {.berths = 64, .receives = 64}) {
    if (text.find("udp:") != text.npos) require_loopback();
    Device device = urma::open(text, options).value();
    Segment segment = device.allocate(1 << 20).value();
    Jetty made = device.jetty(jetty).value();
    return {std::move(device), std::move(segment), std::move(made)};
  }
  std::string line() const {
    Descriptor both = parse_descriptor(segment.descriptor()).value();
    both.jetty = parse_descriptor(jetty.descriptor()).value().jetty;
    return to_string(both);
  }
};

// A device string. It owns the window that the string names.
class Medium {
 public:
  explicit Medium(std::string_view driver) : text_(driver) {
    if (driver != "cxl:") return;
    path_ = "/dev/shm/urma-test-" + std::to_string(getpid());
    text_ += path_;
  }
  Medium(const Medium&) = delete;
  ~Medium() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string path_;
};
inline constexpr std::string_view media[] = {"udp:", "cxl:"};

// Returns whether the descriptor becomes readable before the limit.
inline bool readable(int descriptor, int limit_ms = 10'000) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, limit_ms) == 1 && one.revents == POLLIN;
}

// Two devices on one medium: one owns segments, the other one uses them.
struct UserAndOwner {
  explicit UserAndOwner(std::string_view driver)
      : medium(driver),
        user(Side::open(medium.text(), {.threads = Threads::inlined})),
        owner(Side::open(medium.text(), {.threads = Threads::served})) {}

  RemoteSegment import(const Segment& segment) {
    return user.device.import(segment.descriptor()).value().segment;
  }
  Status run(const Work& work) {
    REQUIRE(user.jetty.post(work) == 1);
    const auto completions = collect(user.jetty, 1);
    REQUIRE(completions.size() == 1);
    // The thread sanitizer sees no order between accesses through a window, but it sees this call.
    REQUIRE(owner.device.stats().ok());
    return completions[0].status;
  }

  Medium medium;
  Side user;
  Side owner;
};

}  // namespace urma::test
