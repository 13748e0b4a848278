// SPDX-License-Identifier: Apache-2.0
// Tests what a switch accepts from devices, and what a device accepts from a switch, on any bytes:
// scripts in which devices attach, send, leave, fall silent and lie. Oracle: no two ports have one
// address or one CNA; a packet leaves to the device that has its destination, and comes from the
// one that has its source; only what a switch may change differs from what arrived; no memory for
// packets is lost; a device keeps its CNA, and never asks in a loop.

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "drivers/link/attachment.h"
#include "tests/fuzz/input.h"
#include "wire/cci.h"

namespace urma::fuzz {
namespace {

using apps::switches::Forwarder;
using apps::switches::Hosts;
using drivers::link::Attachment;
using namespace std::chrono_literals;

constexpr size_t packet_bytes = 300;
constexpr uint64_t port_rate = 100'000'000;  // bytes per second

Endpoint address_of(uint32_t number) {
  return {ipv4(10, 0, 0, static_cast<uint8_t>(number)), 4792};
}

class Script {
 public:
  explicit Script(Input input)
      : input_(input),
        forwarder_({.hosts = {.ports = 3, .lease = 1s, .key = {1, 2}},
                    .fabric = {.lanes = 1 + input_.below(3),
                               .packet_bytes = packet_bytes,
                               .packets = 16,
                               .buffer_bytes = 2000,
                               .hops = 4,
                               .meter = input_.chance(128) ? "caqm_r" : "caqm_w",
                               .base_rtt = 10us},
                    .port = {.bytes_per_second = port_rate,
                             .host = true,
                             .marking = {.from_bytes = 500}}}),
        slots_(forwarder_.free_slots()) {}

  void run() {
    while (!input_.empty()) {
      now_ += Duration(input_.below(200) * 1000);
      step();
      drain();
      check_hosts();
    }
    now_ += 10s;
    drain();
    forwarder_.age(now_);
    check(forwarder_.hosts().devices() == 0, "silent devices are forgotten");
    check(forwarder_.free_slots() == slots_, "all memory for packets comes back");
  }

 private:
  static void check(bool holds, const char* what) { require(holds, what); }

  void step() {
    const uint32_t number = input_.below(6);
    switch (input_.below(8)) {
      case 0:
        return device_speaks(number);
      case 1:
        return (void)take(input_.bytes(64), number);
      case 2: {
        const LinkControl message{.type = static_cast<LinkMessage>(input_.take<uint8_t>()),
                                  .cna = input_.below(8),
                                  .rated = input_.chance(128),
                                  .mtu_log2 = input_.take<uint8_t>(),
                                  .nonce = input_.below(4),
                                  .cookie = input_.take<uint64_t>()};
        return (void)take(control_datagram(message), number);
      }
      case 3:
        now_ += 400ms;
        return forwarder_.age(now_);
      case 4:
        return deceive(number);
      default:
        return send_packet(number);
    }
  }

  struct Device {
    std::optional<Attachment> attachment;
    uint32_t cna = 0;
  };

  // A device asks when its time has come, and reads the answer.
  void device_speaks(uint32_t number) {
    Device& device = devices_[number];
    if (!device.attachment || input_.chance(16)) {
      device = {};
      device.attachment.emplace(
          Attachment::Settings{.cna = input_.below(5), .nonce = uint64_t{number} << 32 | ++nonce_},
          now_);
    }
    for (int messages = 0;; ++messages) {
      check(messages < 4, "a device does not ask in a loop");
      const auto message = device.attachment->due(now_);
      if (!message) break;
      const auto answer = take(control_datagram(*message), number);
      if (!answer) continue;
      hear(device, *answer);
      check(answer->type != LinkMessage::attached ||
                device.attachment->bytes_per_second() == port_rate,
            "a device that attaches learns the rate of its port");
    }
  }

  void hear(Device& device, const LinkControl& answer) {
    // As on the wire.
    const auto read = parse_link_control(control_datagram(answer));
    check(read.has_value(), "a switch sends messages that are messages");
    device.attachment->handle(*read, now_);
    const uint32_t cna = device.attachment->cna();
    check(device.cna == 0 || device.cna == cna, "a device keeps its CNA");
    device.cna = cna;
    const bool attached = device.attachment->state() == Attachment::State::attached;
    check(!attached || cna != 0, "an attached device has a CNA");
  }

  // Another process sends to a device as if it were the switch.
  void deceive(uint32_t number) {
    Device& device = devices_[number];
    if (!device.attachment) return;
    hear(device, {.type = static_cast<LinkMessage>(input_.take<uint8_t>()),
                  .cna = input_.below(8),
                  .rated = input_.chance(128),
                  .refusal = static_cast<LinkRefusal>(input_.take<uint8_t>()),
                  .mtu_log2 = input_.take<uint8_t>(),
                  .lease_ms = input_.take<uint16_t>(),
                  .nonce = input_.chance(128) ? device.attachment->farewell().nonce : 0,
                  .cookie = input_.take<uint64_t>()});
  }

  void send_packet(uint32_t number) {
    const size_t bytes = link_head_bytes + 1 + input_.below(packet_bytes);
    std::vector<std::byte> datagram(bytes, static_cast<std::byte>(number));
    const std::span<std::byte> all(datagram);
    const uint32_t port = forwarder_.hosts().port_of(address_of(number));
    const uint32_t own = port == Hosts::none ? 1 : forwarder_.hosts().host(port).cna;
    const uint32_t source = input_.chance(32) ? input_.below(8) : own;
    LinkWord{.per_packet = input_.chance(64),
             .hops = input_.chance(32) ? input_.take<uint8_t>() : uint8_t{0},
             .switch_queue = static_cast<uint8_t>(input_.below(64))}
        .emit(all.first<LinkWord::size>());
    Cna24Nth{.source = source,
             .destination = input_.below(6),
             .cci = input_.take<uint16_t>(),
             .lbf = input_.take<uint8_t>(),
             .service_level = static_cast<uint8_t>(input_.below(4))}
        .emit(all.subspan<LinkWord::size, Cna24Nth::size>());
    take(datagram, number);
  }

  std::optional<LinkControl> take(std::span<const std::byte> bytes, uint32_t number) {
    const std::vector<std::byte> datagram(bytes.begin(), bytes.end());  // ASan knows its end
    const auto ecn = static_cast<Ecn>(input_.below(4));
    return forwarder_.take(datagram, address_of(number), ecn, now_);
  }

  void drain() {
    std::vector<uint32_t> slots;
    for (Forwarder::Leaving one; forwarder_.next(now_, one);) {
      slots.push_back(one.slot);
      const auto packet = parse_link_packet(one.datagram);
      check(packet.has_value(), "only packets leave");
      check(one.datagram.size() <= packet_bytes, "no packet is oversized");
      check(packet->word.hops <= 4, "no packet loops");
      const uint32_t port = forwarder_.hosts().port_of(one.to);
      check(port != Hosts::none, "packets leave to attached devices");
      check(forwarder_.hosts().host(port).cna == packet->nth.destination,
            "a packet leaves to its destination");
      for (const std::byte byte : packet->packet) {
        check(byte == packet->packet[0], "the bytes of a packet stay as they are");
      }
      const auto cci = parse_cci<CaqmCci>(packet->nth.cci);
      check(!cci || !cci->enabled || cci->switched, "the switch says that it took part");
    }
    for (const uint32_t slot : slots) forwarder_.release(slot);
  }

  void check_hosts() {
    const Hosts& hosts = forwarder_.hosts();
    std::map<uint32_t, int> cnas;
    uint32_t used = 0;
    for (uint32_t port = 0; port < hosts.ports(); ++port) {
      const Hosts::Host& host = hosts.host(port);
      if (host.cna == 0) continue;
      ++used;
      check(++cnas[host.cna] == 1, "a CNA belongs to one device");
      check(hosts.port_of(host.at) == port, "a device has one port");
      check(forwarder_.fabric().up(port), "the port of a device is up");
    }
    check(used == hosts.devices(), "the attached devices are counted");
  }

  Input input_;
  Forwarder forwarder_;
  const uint32_t slots_;
  std::map<uint32_t, Device> devices_;
  uint64_t nonce_ = 0;
  Time now_{1s};
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(urma::fuzz::Input(data, size)).run();
  return 0;
}
