// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/prng.h"
#include "drivers/packet_port.h"
#include "drivers/sim/engines.h"
#include "drivers/sim/faults.h"
#include "drivers/sim/packets.h"
#include "drivers/sim/pair_wire.h"
#include "drivers/sim/switches.h"
#include "drivers/sim/trace.h"

namespace urma::drivers::sim {

class Port;
class ClockedPort;

// The medium of all ports with one name, and their clock: carries packets, delays or loses them by
// the ports' settings, and advances virtual time from event to event. All random decisions follow
// from a seed. One thread at a time uses it, except for `named`.
class Network final : public VirtualClock {
 public:
  struct Counters {
    uint64_t sent = 0;        // packets that ports have sent
    uint64_t corrupted = 0;   // packets that were delivered with flipped bits
    uint64_t overflowed = 0;  // packets that were lost because the network holds no more at a time
    uint64_t accesses = 0;    // of devices to the memory of others
    uint64_t strays = 0;      // accesses whose transfer had ended before for its initiator
    uint64_t failed_pairs = 0;  // at random
  };

  explicit Network(uint64_t seed);

  // Returns the network of this name in this process. It is made with `seed` if it does not exist.
  // Any thread may call it.
  static std::shared_ptr<Network> named(const std::string& name, uint64_t seed);

  // Puts switches into the middle of the network, through which all packets go from then on. Later
  // calls change nothing. Returns false if the network has ports but no switches.
  bool use_switches(const Switches::Settings& settings);

  // VirtualClock
  Time now() const override { return now_; }
  void attach(Driven& driven, const Endpoint& at) override;
  void detach(Driven& driven) override;
  void poke(Driven& driven) override;
  bool step(Time until) override;
  uint64_t seed() override { return prng_.next(); }

  Faults faults;  // of the wire and of switches
  // Kills the process at this address: nothing is sent from or delivered to it.
  void kill(const Endpoint& at);
  // Stops the process at this address, so that its engine is not run, or lets it continue.
  void stop(const Endpoint& at, bool stopped);

  // Returns a hash of everything delivered: the time, source, destination, length, ECN field and
  // transport header.
  uint64_t trace_hash() const { return trace_.hash(); }
  const Counters& counters() const { return counters_; }
  // Returns the switches of `topology=`, or null.
  Switches* switches() { return switches_.get(); }
  // Returns the host of the switches that has this address; `none` if there is none.
  uint32_t host_of(const Endpoint& at) const;
  // Returns the counters of the line from the switches to an address that was opened.
  fabric::LaneCounters counters_to(const Endpoint& at);

 private:
  friend class Port;
  friend class ClockedPort;
  friend class RemoteEnds;

  static constexpr uint32_t none = UINT32_MAX;

  enum class Happens : uint8_t { packet_arrives, port_is_due, owner_wakes, packet_leaves };
  struct Event {
    Time at;
    uint64_t order;
    Happens what;
    uint32_t index;  // of a packet, a port, a clocked port
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  // An address of the network: what is there, and how its packets get there.
  struct Place {
    Endpoint at;
    Port* port = nullptr;
    std::vector<uint32_t> engines = {};  // indices in Engines
    uint32_t host = none;                // of the switches
    bool dead = false;
  };
  struct Hash {
    size_t operator()(const Endpoint& at) const;
  };

  uint32_t find(const Endpoint& at) const;
  uint32_t place_of(const Endpoint& at);
  Endpoint add(Port& port, const Eid& wanted, Status& status);
  bool add_host(Place& place, const Port& port);
  void remove(Port& port);
  void add(ClockedPort& port);
  void remove(ClockedPort& port);
  void transmit(Port& from, const TxFrame& frame);
  void wake(uint32_t place);
  void run_port_at(Port& port, Time at);
  void ring_polled_ports();
  void hear_bells();
  Time next_event() const;
  void advance(Time to);
  void handle(const Event& event);
  void leave(uint32_t packet);
  void deliver(uint32_t packet);
  // Returns whether packets of this length are lost because of a killed process or a cut.
  bool severed(uint32_t from, uint32_t to, size_t bytes) const;

  Time now_{std::chrono::milliseconds(1)};
  Prng prng_;
  uint64_t order_ = 0;
  Counters counters_;
  Trace trace_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  Packets packets_;
  std::vector<Port*> ports_;                 // null once removed
  std::vector<ClockedPort*> clocked_ports_;  // null once removed
  PairWire pairs_;
  Engines engines_{prng_};
  std::vector<Place> places_;
  std::unordered_map<Endpoint, uint32_t, Hash> place_of_;
  std::unique_ptr<Switches> switches_;  // null without a topology
  uint32_t hosts_ = 0;                  // of the switches, that have an address
  uint32_t next_address_ = 1;
};

}  // namespace urma::drivers::sim
