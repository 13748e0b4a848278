// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/siphash.h"
#include "urma/core/endpoint.h"
#include "urma/core/time.h"
#include "wire/link.h"

namespace urma::apps::switches {

// The address of a device, and the medium over which the switch reaches it: media that have nothing
// in common may have equal addresses.
struct Place {
  Endpoint endpoint;
  uint8_t medium = 0;  // its number

  Place() = default;
  Place(const Endpoint& at, uint8_t number = 0) : endpoint(at), medium(number) {}
  friend bool operator==(const Place&, const Place&) = default;
};

// The devices that are attached, one at each port: the switch's half of attaching. A device must
// return a cookie before it gets a port, so that no device attaches from an address at which it
// does not receive. It does not know packets and does no I/O. Used by one thread.
class Hosts {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Settings {
    uint32_t ports = 16;
    // The CNAs that devices of this switch can have.
    uint32_t first_cna = 1;
    uint32_t last_cna = most_cna;
    Duration lease = std::chrono::seconds(5);
    uint8_t mtu_log2 = 13;
    congestion::Metering metering = congestion::Metering::unknown;  // of the ports of the switch
    uint64_t key[2] = {};  // of the cookies; others at each start
  };
  struct Host {
    Place at;
    uint32_t cna = 0;  // 0: the port is free
    uint64_t nonce = 0;
    Time lease_ends{};
  };
  struct Counters {
    uint64_t attached = 0;  // times that a device got a port
    uint64_t detached = 0;  // that gave theirs back
    uint64_t aged_out = 0;  // that were silent for longer than their lease
    uint64_t challenged = 0;
    uint64_t refused_taken = 0;      // another device had the CNA
    uint64_t refused_full = 0;       // no port or no CNA was free
    uint64_t refused_elsewhere = 0;  // the CNA belongs to another switch
  };
  // The caller's duties after a message, `closed` first.
  struct Outcome {
    std::optional<LinkControl> answer = {};
    uint32_t closed = none;  // this port lost its device
    uint32_t opened = none;  // this port got one
  };

  explicit Hosts(const Settings& settings);

  Outcome handle(const LinkControl& message, const Place& from, Time now);
  // Ends a lease that is over. Returns the port, or `none` if no lease is.
  uint32_t age(Time now);

  // Returns the port of the device at this place, or `none`.
  uint32_t port_of(const Place& at) const;
  const Host& host(uint32_t port) const { return hosts_[port]; }
  uint32_t ports() const { return static_cast<uint32_t>(hosts_.size()); }
  // Returns how many devices are attached.
  uint32_t devices() const { return static_cast<uint32_t>(by_place_.size()); }
  const Counters& counters() const { return counters_; }

 private:
  struct HashPlace {
    size_t operator()(const Place& at) const;
  };

  Outcome attach(const LinkControl& message, const Place& from, Time now);
  Outcome refuse(const LinkControl& message, LinkRefusal why, uint64_t& counter);
  uint32_t free_port() const;
  uint32_t free_cna(const Place& at) const;
  uint32_t free_cna_from(uint32_t least, const Place& at) const;
  void forget(uint32_t port);
  uint64_t cookie_for(const Place& at, uint64_t nonce) const;

  const Settings settings_;
  const SipHash hash_;
  std::vector<Host> hosts_;  // by port
  std::unordered_map<Place, uint32_t, HashPlace> by_place_;
  std::unordered_map<uint32_t, uint32_t> by_cna_;
  Counters counters_;
};

}  // namespace urma::apps::switches
