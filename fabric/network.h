// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/slab.h"
#include "fabric/event_queue.h"
#include "fabric/topology.h"

namespace urma::fabric {

// A hash of all deliveries in their order. Two runs are the same if their hashes are.
class TraceHash {
 public:
  void add(uint64_t word) {
    value_ = (value_ ^ word) * 0xd6e8feb86659fd93;
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// Sees the packets that switches accept, for models of fields that no header has, and those that
// are lost, for a caller that keeps something for each packet.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // `departs` is `never` if the departure of the packet is not decided yet. The queue of the port
  // contains the packet.
  virtual void accepted(uint32_t /*at*/, uint32_t /*port*/, const Packet& /*packet*/,
                        Time /*departs*/) {}
  // A switch has dropped the packet, or it was lost on a cut cable.
  virtual void lost(const Packet& /*packet*/) {}
};

// A simulated fabric in virtual time: hosts, cables and switches. It runs the switches by itself,
// and returns to its caller what concerns a host: a packet that has arrived, or a timer. So the
// caller is a loop over `next` that lets hosts send, and no hop is a call of a function object.
// Used by one thread at a time.
class Network {
 public:
  struct Settings {
    SwitchSettings switches = {};
    SwitchPort each_port = {};   // the marks and queues of all ports of switches
    uint32_t packets = 1 << 20;  // the most on cables and in the lines of hosts together
    EventQueue::Settings events = {};
  };
  enum class What : uint8_t { packet, timer };
  // Something that has happened to a host: `packet` has arrived, or the timer `tag` is due.
  struct Happening {
    What what = What::packet;
    uint32_t host = 0;
    uint32_t tag = 0;
    Packet packet = {};
  };

  Network(const Topology& topology, const Settings& settings);

  Time now() const { return now_; }
  // Sends a packet from a host, behind the earlier packets on the host's line. Returns when its
  // last byte leaves the host.
  Time send(uint32_t host, const Packet& packet);
  // Lets a timer happen to a host. Timers of one host with the same time happen in the order of
  // calls.
  void set_timer(uint32_t host, Time at, uint32_t tag);
  // Runs until something happens to a host, and returns true. If nothing does, runs until `until`
  // and returns false.
  bool next(Time until, Happening& happening);
  // Returns when the next event happens, at a host or at a switch; `never` if none is pending.
  Time next_event() const { return events_.next(); }

  // Gives a host another cable, which later packets take, and sets the port at its other end. The
  // rate of the port is that of the cable.
  void set_cable(uint32_t host, const CableKind& cable, SwitchPort port);
  // Returns the end of a host's cable that is at a switch.
  Cable::End far_end(uint32_t host) const { return channels_[hosts_[host].channel].to; }
  // Cuts or mends a cable of the topology. A cut loses all packets on the cable and in the queues
  // before it, and then those that a host sends on it.
  void cut(uint32_t cable, bool severed);

  // Lets the watcher see all packets from now on. Null ends this.
  void watch(Watcher* watcher) { watcher_ = watcher; }

  std::vector<Switch>& switches() { return switches_; }
  Switch& switch_at(uint32_t node) { return switches_[node - hosts_.size()]; }
  // Returns the number of packets that have reached a host or a switch.
  uint64_t hops() const { return hops_; }
  // Returns the number of packets that were lost on cables. Those that a switch has counted as
  // recalled are among them.
  uint64_t lost_on_cables() const { return lost_; }
  uint64_t in_flight() const { return packets_.size(); }
  uint64_t trace_hash() const { return trace_.value(); }

 private:
  // One direction of a cable. Its number is twice that of the cable, plus 1 from b to a.
  struct Channel {
    Cable::End from;
    Cable::End to;
    Duration delay;
    uint32_t sequence;  // of packets
    uint8_t epoch;      // how often it has been cut
    bool severed;
    bool decision_planned;
  };
  struct Host {
    Line line;
    uint32_t channel;  // that it sends on
    uint32_t timers = 0;
  };
  // Event::what has the kind in its low bits and, for packets, the epoch of the channel above them.
  enum Kind : uint32_t { arrival, decision, timer };
  static constexpr unsigned kind_bits = 8;

  bool is_host(uint32_t node) const { return node < hosts_.size(); }
  // Events at the same time happen in this order: arrivals by channel, decisions by channel, timers
  // by host.
  uint32_t place_of(Kind kind, uint32_t index) const {
    return kind * static_cast<uint32_t>(channels_.size()) + index;
  }
  void prefetch();
  void launch(uint32_t channel, uint32_t packet, Time departs);
  void lose(uint32_t packet);
  void plan_decision(Switch& at, uint32_t channel);
  bool handle(const Event& event, Happening& happening);
  bool land(const Event& event, Happening& happening);
  void hop(uint32_t node, uint32_t port, uint32_t packet);
  void decide(uint32_t channel);
  void cut_end(uint32_t channel, bool severed);

  std::vector<Switch> switches_;
  std::vector<Channel> channels_;
  std::vector<std::vector<uint32_t>> leaving_;  // for each switch and port, the channel from it
  std::vector<Host> hosts_;
  Slab<Packet> packets_;
  EventQueue events_;
  Time now_{};
  uint64_t hops_ = 0;
  uint64_t lost_ = 0;
  Watcher* watcher_ = nullptr;
  TraceHash trace_;
};

}  // namespace urma::fabric
