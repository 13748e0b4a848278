// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/loopback.h"
#include "tests/bytes.h"
#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/descriptor.h"
#include "tests/drivers/window_file.h"
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
  std::string line() const { return descriptor_of(segment, jetty); }
};

// A device string. It owns the window that the string names.
class Medium {
 public:
  explicit Medium(std::string_view driver, std::string_view options = "") : text_(driver) {
    if (driver == "cxl:") text_ = window_.emplace("medium").device("");
    text_ += options;
  }
  const std::string& text() const { return text_; }
  const WindowFile& window() const { return window_.value(); }

 private:
  std::string text_;
  std::optional<WindowFile> window_;
};
inline constexpr std::string_view media[] = {"udp:", "cxl:"};

// Returns whether the descriptor becomes readable before the limit.
inline bool readable(int descriptor, int limit_ms = 10'000) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, limit_ms) == 1 && one.revents == POLLIN;
}

// Two devices on one medium: one owns segments, the other one uses them.
struct UserAndOwner {
  explicit UserAndOwner(std::string_view driver, std::string_view options = "")
      : medium(driver, options),
        user(Side::open(medium.text(), {.threads = Threads::inlined})),
        owner(Side::open(medium.text(), {.threads = Threads::served})) {}

  RemoteSegment import(const Segment& segment) {
    return user.device.import(segment.descriptor()).value().segment;
  }
  Status run(const Work& work) {
    in_order();
    const Status status = run_one(user.jetty, work).status;
    in_order();
    return status;
  }
  // Orders what the owner's service thread places with what a test reads: the thread sanitizer sees
  // no order between accesses through the two mappings of the window here, but it sees this call.
  void in_order() { REQUIRE(owner.device.stats().ok()); }

  Medium medium;
  Side user;
  Side owner;
};

}  // namespace urma::test
