#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/loopback.h"
#include "tests/catch.h"
#include "tests/completions.h"
#include "urma/urma.hpp"

namespace urma::test {

using namespace std::chrono_literals;

// Throws if the loopback interface is down, as in a new network namespace: devices open there, but
// each work fails after 2 s, and a program of tests would need minutes to say nothing but that.
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

// A device string, and the window that it names for as long as it lives.
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

inline std::vector<std::byte> bytes_like(size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + seed);
  return bytes;
}

}  // namespace urma::test
