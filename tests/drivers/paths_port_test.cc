// SPDX-License-Identifier: Apache-2.0
#include "drivers/paths/paths_port.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/drivers/idle_port.h"
#include "tests/drivers/running_switch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using drivers::PacketPort;

// A port that always has as many frames as there is room for.
class BusyPort final : public IdlePort {
 public:
  explicit BusyPort(uint16_t port) {
    facts_.self = {parse_address("fd00::7").value(), port};
    facts_.eid = facts_.self.address;
    facts_.mtu = 1024;
    facts_.buffer_bytes = 1 << 20;
  }
  size_t receive(std::span<RxFrame> frames, Time) override { return frames.size(); }
};

TEST_CASE("ports that always have packets take turns, however many there are") {
  for (uint16_t count = 1; count <= most_paths; ++count) {
    std::vector<std::unique_ptr<PacketPort>> ports;
    for (uint16_t i = 0; i < count; ++i) {
      ports.push_back(std::make_unique<BusyPort>(static_cast<uint16_t>(5000 + i)));
    }
    const auto made = drivers::paths::PathsPort::make(std::move(ports), Balance::slice, {});
    REQUIRE(made);
    PacketPort& port = **made;
    const auto turns = [&](unsigned there) {
      std::array<RxFrame, 64> frames;
      std::array<unsigned, most_paths> of{};
      for (unsigned i = 0; i < 100 * there; ++i) {
        REQUIRE(port.receive(frames, Time{}) == frames.size());
        ++of[frames.front().path];
        CHECK(frames.front().path == frames.back().path);
      }
      return of;
    };
    INFO(count << " ports");
    for (unsigned i = 0; const unsigned had : turns(count)) CHECK(had == (i++ < count ? 100 : 0));
    if (count == 1) continue;
    // When one port is stopped, the others share its turns equally.
    port.path_ports()->stop(0);
    unsigned i = 0;
    for (const unsigned had : turns(count - 1u)) {
      const bool there = i > 0 && i < count;
      CHECK((there ? had >= 99 && had <= 101 : had == 0));
      ++i;
    }
  }
}

TEST_CASE("the rate of a link is that of the slowest part, and of the fastest path") {
  const auto rate_of = [](const std::string& device) {
    const auto port = drivers::open_port(drivers::parse_device_string(device).value()).value();
    return port->facts().line_bytes_per_second;
  };
  const std::string slow = "fault(rate=100Mbit):udp:";
  const std::string fast = "fault(rate=1Gbit):udp:";
  CHECK(rate_of("udp:") == 0);  // the loopback interface states none
  CHECK(rate_of("sim:rates?rate=10Gbit") == 1'250'000'000);
  CHECK(rate_of("sim:rates") == 0);
  CHECK(rate_of(slow) == 12'500'000);
  CHECK(rate_of("fault(in.rate=1Gbit):udp:") == 0);
  CHECK(rate_of("fault(rate=100Mbit):" + fast) == 12'500'000);
  CHECK(rate_of("fault(rate=1Gbit):" + slow) == 12'500'000);
  CHECK(rate_of("paths():" + slow + "+" + fast) == 125'000'000);
  CHECK(rate_of("paths():" + fast + "+udp:") == 0);
}

TEST_CASE("a device with several paths carries the ECN field if each of its paths does") {
  const auto port_of = [](const std::string& device) {
    return drivers::open_port(drivers::parse_device_string(device).value()).value();
  };
  CHECK_FALSE(port_of("paths():udp:?ecn=yes+udp:")->facts().carries.ecn);
  CHECK_FALSE(port_of("paths():udp:+udp:?ecn=yes")->facts().carries.ecn);
  const auto port = port_of("paths():udp:?ecn=yes+udp:?ecn=yes");
  CHECK(port->facts().carries.ecn);
  const auto refused = port->path_ports()->prepare("udp:");
  REQUIRE_FALSE(refused.ok());
  CHECK(mentions(refused.error().message, "Fix: add it with ecn=yes"));
  CHECK(port->path_ports()->prepare("udp:?ecn=yes").ok());
  CHECK(port_of("paths():udp:+udp:")->path_ports()->prepare("udp:?ecn=yes").ok());
}

TEST_CASE("paths over switches with different meters leave out what either would misread") {
  using congestion::Metering;
  const std::string by_w = "sim:meters-w?topology=star&rate=1Gbit&meter=caqm_w";
  const std::string by_r = "sim:meters-r?topology=star&rate=1Gbit&meter=caqm_r";
  CHECK(PortPair::open(by_w)->facts().metering == Metering::increases);
  CHECK(PortPair::open(by_r)->facts().metering == Metering::rates);
  CHECK(PortPair::open("sim:meters-none?topology=star")->facts().metering == Metering::none);
  CHECK(PortPair::open("udp:")->facts().metering == Metering::none);

  const RunningSwitch rates, increases("udp:127.0.0.1:0?ecn=yes", "caqm_w");
  const auto mixed = PortPair::open("paths():" + rates.device() + "+" + increases.device());
  CHECK(mixed->facts().metering == Metering::other);
  const auto port = PortPair::open("paths():" + rates.device() + "+" + rates.device());
  CHECK(port->facts().metering == Metering::rates);
  CHECK(port->path_ports()->prepare(rates.device()).ok());
  const auto refused = port->path_ports()->prepare(increases.device());
  REQUIRE_FALSE(refused.ok());
  CHECK(mentions(refused.error().message, "Fix: start it with the --cc of the other switches"));
}

}  // namespace
}  // namespace urma::test
