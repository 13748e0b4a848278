// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "apps/urma_switch/hosts.h"
#include "apps/urma_switch/port_set.h"
#include "apps/urma_switch/trunks.h"
#include "base/region.h"
#include "fabric/switch.h"

namespace urma::apps::switches {

// Reads and writes the datagrams of a switch, and keeps packets while they are in its queues:
// Hosts knows the attached devices, Trunks the other switches, fabric::Switch decides when each
// packet leaves. Does no I/O and reads no clock. Used by one thread.
class Forwarder {
 public:
  // Addresses of devices that are attached to other switches.
  struct Route {
    uint32_t first_cna;
    uint32_t last_cna;
    std::vector<uint16_t> trunks;  // of equal cost, by their indices: each flow takes one of them
  };
  struct Settings {
    Hosts::Settings hosts = {};
    fabric::SwitchSettings fabric = {};
    fabric::SwitchPort port = {};  // each port is like this
    // The rates of the lines to some devices, by CNA, in bytes per second.
    std::unordered_map<uint32_t, uint64_t> rates = {};
    // The switches at the other ends of trunks, which the first medium reaches. A trunk is a port
    // without a lease, and the first ports are trunks.
    std::vector<Endpoint> trunks = {};
    uint64_t trunk_rate = 0;   // bytes per second
    uint64_t trunk_nonce = 0;  // another one at each start
    std::vector<Route> routes = {};
  };
  // Datagrams that no port received.
  struct Counters {
    uint64_t malformed = 0;    // neither a packet nor a message
    uint64_t strangers = 0;    // packets of devices that are not attached
    uint64_t misdirected = 0;  // messages that only a switch sends
    uint64_t no_memory = 0;    // packets while all memory for packets was in use
    Duration latest{};         // the longest time by which a packet left too late
  };
  // A packet that leaves. Its memory is in use until `release`.
  struct Leaving {
    std::span<const std::byte> datagram;
    Place to;
    Ecn ecn = Ecn::not_ect;
    uint32_t slot = 0;
  };
  // A bit for each medium.
  using Media = uint32_t;

  explicit Forwarder(const Settings& settings);

  // Takes a datagram. Returns the message to answer it with, if there is one.
  std::optional<LinkControl> take(std::span<const std::byte> datagram, const Place& from, Ecn ecn,
                                  Time now);
  // Returns the next packet that has left by `now`, or false. The packets of one port come behind
  // each other, so that they are sent as a train. Those to media that are `full` stay.
  bool next(Time now, Leaving& leaving, Media full = 0);
  void release(uint32_t slot) { free_.push_back(slot); }
  // Returns when the next packet leaves to a medium that is not full.
  Time due(Media full = 0) const;
  // Closes the ports of devices that are silent.
  void age(Time now);
  // Returns the message that asks the switch at the end of a trunk whether it is there. The caller
  // sends all of them at regular intervals. While a switch is silent, flows take other trunks.
  LinkControl ask(uint32_t trunk);

  const Settings& settings() const { return settings_; }
  const Hosts& hosts() const { return hosts_; }
  const Trunks& switches() const { return switches_; }
  uint32_t trunks() const { return switches_.count(); }
  // Returns the device at a port that is not a trunk.
  const Hosts::Host& host_at(uint32_t port) const { return hosts_.host(port - trunks()); }
  const fabric::Switch& fabric() const { return fabric_; }
  // Returns the CNA that a port has, or had last; 0 for a trunk.
  uint32_t last_cna(uint32_t port) const { return last_cna_[port]; }
  // Returns the number of the medium to which a port leads.
  uint8_t medium_of(uint32_t port) const { return place_of(port).medium; }
  uint64_t bytes_per_second(uint32_t port) const {
    return port < trunks() ? settings_.trunk_rate : port_settings(last_cna_[port]).bytes_per_second;
  }
  const Counters& counters() const { return counters_; }
  // Returns the number of ports that were ever used; they are the first ones.
  uint32_t used_ports() const { return used_ports_; }
  uint32_t free_slots() const { return static_cast<uint32_t>(free_.size()); }

 private:
  void connect_trunks();
  uint32_t port_of(const Place& at) const;
  Place place_of(uint32_t port) const;
  std::optional<LinkControl> handle(const LinkControl& message, const Place& from, Time now);
  std::optional<LinkControl> handle_trunk(const LinkControl& message, uint32_t trunk);
  std::optional<LinkControl> unknown(Time now);
  void forward(std::span<const std::byte> datagram, const LinkPacket& in, uint32_t port, Ecn ecn,
               Time now);
  fabric::SwitchPort port_settings(uint32_t cna) const;
  Leaving leave(const fabric::Packet& packet);
  // Returns whether a port leads to a medium that is full.
  bool waits(uint32_t port, Media full) const { return (full >> medium_of(port) & 1) != 0; }
  void open(uint32_t port, Time now);
  void close(uint32_t port, Time now);
  std::span<std::byte> memory(uint32_t slot) {
    return {memory_.data() + size_t{slot} * slot_bytes_, slot_bytes_};
  }

  const Settings settings_;
  Hosts hosts_;
  Trunks switches_;
  fabric::Switch fabric_;
  const uint32_t slot_bytes_;
  Region memory_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> last_cna_;
  uint32_t used_ports_;  // ports from here on were never used
  PortSet busy_;         // ports with packets
  uint32_t port_ = 0;    // at which `next` continues
  Time unknown_said_ = Time::min();
  Counters counters_;
};

}  // namespace urma::apps::switches
