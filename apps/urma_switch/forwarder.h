#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "apps/urma_switch/hosts.h"
#include "base/region.h"
#include "fabric/switch.h"

namespace urma::apps::switches {

// Reads and writes the datagrams of a switch, and keeps packets while they are in its queues:
// Hosts knows the attached devices, fabric::Switch decides when each packet leaves. Does no I/O and
// reads no clock. Used by one thread.
class Forwarder {
 public:
  struct Settings {
    Hosts::Settings hosts = {};
    fabric::SwitchSettings fabric = {};
    fabric::SwitchPort port = {};  // each port is like this
    // The rates of the lines to some devices, by CNA, in bytes per second.
    std::unordered_map<uint32_t, uint64_t> rates = {};
  };
  // Datagrams that no port received.
  struct Counters {
    uint64_t malformed = 0;    // neither a packet nor a message
    uint64_t strangers = 0;    // packets of devices that are not attached
    uint64_t misdirected = 0;  // messages that only a switch sends
    uint64_t no_memory = 0;    // packets while all memory for packets was in use
  };
  // A packet that leaves. Its memory is in use until `release`.
  struct Leaving {
    std::span<const std::byte> datagram;
    Endpoint to;
    Ecn ecn = Ecn::not_ect;
    uint32_t slot = 0;
  };

  explicit Forwarder(const Settings& settings);

  // Takes a datagram. Returns the message to answer it with, if there is one.
  std::optional<LinkControl> take(std::span<const std::byte> datagram, const Endpoint& from,
                                  Ecn ecn, Time now);
  // Returns the next packet that has left by `now`, or false. The packets of one port come behind
  // each other, so that they are sent as a train.
  bool next(Time now, Leaving& leaving);
  void release(uint32_t slot) { free_.push_back(slot); }
  // Returns when the next packet leaves.
  Time due() const;
  // Closes the ports of devices that are silent.
  void age(Time now);

  const Hosts& hosts() const { return hosts_; }
  const fabric::Switch& fabric() const { return fabric_; }
  // Returns the CNA that a port has, or had last.
  uint32_t last_cna(uint32_t port) const { return last_cna_[port]; }
  uint64_t bytes_per_second(uint32_t port) const {
    return port_settings(last_cna_[port]).bytes_per_second;
  }
  const Counters& counters() const { return counters_; }
  // Returns the number of ports that were ever used; they are the first ones.
  uint32_t used_ports() const { return used_ports_; }
  uint32_t free_slots() const { return static_cast<uint32_t>(free_.size()); }

 private:
  std::optional<LinkControl> handle(const LinkControl& message, const Endpoint& from, Time now);
  std::optional<LinkControl> unknown(Time now);
  void forward(std::span<const std::byte> datagram, const LinkPacket& in, uint32_t port, Ecn ecn,
               Time now);
  fabric::SwitchPort port_settings(uint32_t cna) const;
  void open(uint32_t port, Time now);
  void close(uint32_t port, Time now);
  std::span<std::byte> memory(uint32_t slot) {
    return {memory_.data() + size_t{slot} * slot_bytes_, slot_bytes_};
  }

  const Settings settings_;
  Hosts hosts_;
  fabric::Switch fabric_;
  const uint32_t slot_bytes_;
  Region memory_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> last_cna_;
  uint32_t used_ports_ = 0;  // ports from here on were never used
  uint32_t port_ = 0;        // at which `next` continues
  Time unknown_said_ = Time::min();
  Counters counters_;
};

}  // namespace urma::apps::switches
