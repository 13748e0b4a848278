// SPDX-License-Identifier: Apache-2.0
// Devices that cannot be opened: the errors, and their cures.

#include "tests/catch.h"
#include "tests/dpdk/dpdk_ports.h"

namespace urma::test {
namespace {

TEST_CASE("device strings that name no port, or a wrong address, are refused") {
  const Status wrong = Status::invalid_argument;
  check_refused("dpdk:", wrong, "the port is missing");
  for (const char* ip : {"x", "10.9.0.1/33", "10.9.0.1/0", "10.9.0.1/", "10.9.0.1/8x", "127.0.0.1",
                         "224.0.0.1", "0.0.0.0", "::", "fe80::1", "ff02::1", "fd00::1/129"}) {
    check_refused(std::string("dpdk:net_null0?ip=") + ip, wrong, "the value of ip must be");
  }
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&gw=fd00::1", wrong, "gw");
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&vlan=4095", wrong, "vlan");
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&dscp=64", wrong, "dscp");
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&queues=0", wrong, "queues");
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&queues=17", wrong, "queues");
  check_refused("dpdk:net_null0?ip=10.9.0.1/24&mtu=1000", wrong, "mtu");
  check_refused("dpdk:net_null0?speed=9", wrong, "speed");
}

TEST_CASE("ports that DPDK cannot make are refused with what DPDK says") {
  check_refused("dpdk:nonsense0?ip=10.9.0.1/24", Status::io_error, "DPDK cannot make this port");
  check_refused("dpdk:0000:3b:00.0?ip=10.9.0.1/24", Status::invalid_argument, "0000:3b:00.0");
  check_refused("dpdk:net_virtio_user0,path=/none?ip=10.9.0.1/24", Status::io_error,
                "start the vhost side first");
  check_refused("dpdk:net_af_packet0,iface=none0?ip=10.9.0.1/24", Status::io_error, "iface=");
  check_refused("dpdk:net_vhost0,iface=/none/sock", Status::invalid_argument, "ip=");
  check_refused("dpdk:net_vhost0,iface=/none/sock?ip=10.9.0.1/24", Status::io_error, "socket");
}

TEST_CASE("a kind of port that installs a signal handler is refused") {
  check_refused("dpdk:net_tap0?ip=10.9.0.1/24", Status::invalid_argument, "net_af_packet0");
}

TEST_CASE("a port, or an end of a pair, that is in use is refused") {
  const auto first = try_open_port("dpdk:net_null0?ip=10.9.0.1/24");
  REQUIRE(first.ok());
  check_refused("dpdk:net_null0?ip=10.9.0.2/24", Status::address_in_use, "another number");
  PortPair ports(ring_end(0), ring_end(1));
  check_refused(ring_end(2), Status::address_in_use, "both ends");
}

TEST_CASE("a socket at which another port listens is refused, and that port is reached as before") {
  PortPair ports(vhost(), virtio_user());
  REQUIRE(reaches(ports));
  const std::string second = "dpdk:net_vhost1,iface=" + socket_path() + "?ip=10.9.0.3/24";
  for (int i = 0; i < 3; ++i) check_refused(second, Status::address_in_use, socket_path());
  CHECK(reaches(ports));
  ports.b.reset();
  check_refused(second, Status::address_in_use, "no other process uses");
  ports.b = PortPair::open(virtio_user());
  CHECK(reaches(ports));
  ports.a.reset();
  ports.b.reset();
  CHECK(lost_buffers() == 0);
}

TEST_CASE("an MTU or a number of queues that the port does not have is refused") {
  check_refused(
      "dpdk:net_memif0,role=server,socket=" + socket_path() + ",bsize=2048?ip=10.9.0.1/24&mtu=9000",
      Status::invalid_argument, "bsize=9216");
  check_refused("dpdk:net_af_xdp0,iface=lo?ip=10.9.0.1/24&mtu=9000", Status::invalid_argument,
                "a smaller mtu");
  check_refused("dpdk:net_vhost0,queues=1,iface=" + socket_path() + "?ip=10.9.0.1/24&queues=2",
                Status::invalid_argument, "leave the argument queues= of the port out");
  check_refused(ring_end(0, "&queues=2"), Status::invalid_argument, "a smaller queues=");
  CHECK(lost_buffers() == 0);
}

TEST_CASE("a port that computes no checksums has them computed, and says so") {
  const auto checksum = [](const std::string& device) {
    const auto port = PortPair::open(device);
    for (const Setting& one : port->facts().settings) {
      if (one.name == "udp_checksum") return one.value;
    }
    return std::string();
  };
  CHECK(checksum(ring_end(0)) == "software");
  CHECK(checksum("dpdk:net_null0?ip=10.9.0.1/24") == "software");
  CHECK(checksum(vhost()) == "port");
}

TEST_CASE("virtual ports invent the speed of their link, so they state no rate") {
  for (const std::string& port :
       {std::string("dpdk:net_null0?ip=10.9.0.1/24"), ring_end(0),
        "dpdk:net_memif0,role=server,socket=" + socket_path() + "?ip=10.9.0.1/24"}) {
    const auto opened = try_open_port(port);
    REQUIRE(opened.ok());
    CHECK((*opened)->facts().line_bytes_per_second == 0);
  }
}

TEST_CASE("without ip= the address is derived from the MAC address") {
  const auto port = try_open_port("dpdk:net_null0");
  REQUIRE(port.ok());
  const Endpoint self = (*port)->facts().self;
  CHECK(to_string(self.address).starts_with("fd55:4201::"));
  CHECK_FALSE(is_switched(self.address));
  CHECK(self.port == ub_port);
}

TEST_CASE("a shared object of another build, or of something else, is not used") {
  using drivers::dpdk::load_plugin_from;
  const auto refused = [](const char* object, std::string_view says) {
    const auto plugin = load_plugin_from(object);
    REQUIRE_FALSE(plugin.ok());
    INFO(plugin.error().message);
    CHECK(plugin.status() == Status::unsupported);
    CHECK(plugin.error().message.find(says) != std::string::npos);
    CHECK(plugin.error().message.find("Fix: ") != std::string::npos);
  };
  refused("libnone_dpdk.so", "cannot be loaded");
  refused("libc.so.6", "is not the library of this driver");
  refused(URMA_OTHER_BUILD, "another build");
  refused(URMA_LACKS_DPDK, "apt-get install libdpdk-dev");
  CHECK(drivers::dpdk::load_plugin().ok());
}

}  // namespace
}  // namespace urma::test
