// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "congestion/port_meter.h"
#include "fabric/drop.h"
#include "fabric/line.h"
#include "fabric/packet.h"
#include "fabric/packet_lists.h"
#include "fabric/routes.h"

namespace urma::fabric {

// The lane of a port that sends next if several have packets.
enum class Service : uint8_t {
  strict,       // the highest one
  round_robin,  // each in turn, so that all send the same number of bytes
};

// The queue at which packets get an ECN mark: the bytes that are ahead of the packet in its lane.
// At most `from_bytes`: none are marked. More than `all_bytes`: all are. In between, the
// probability rises from 0 to `most_chance` (RED). The default of `all_bytes` makes a step at
// `from_bytes`, as DCTCP uses it.
struct Marking {
  uint64_t from_bytes = UINT64_MAX;
  uint64_t all_bytes = 0;
  double most_chance = 1;
};

// Until when a switch holds the description of a packet.
enum class Keeps : uint8_t {
  // For simulators: until its departure is decided. `arrive` or `decide` returns the time, and the
  // caller delivers the packet.
  until_decided,
  // For programs that forward packets: until `collect` returns it, at its departure or later.
  until_collected,
};

// The parameters of a switch, which do not change while it exists.
struct SwitchSettings {
  uint32_t ports = 2;
  uint32_t lanes = 1;                   // of each port
  uint32_t addresses = most_addresses;  // each destination is below this
  uint32_t packet_bytes = 9216;         // the largest packet that is accepted
  uint32_t full_packet_bytes = 0;       // of flows, for the meters; 0: packet_bytes
  // In all queues together. One port has at most as many as are free, so that small packets that
  // wait at a slow port leave room for others.
  uint32_t packets = 64 * 1024;
  uint64_t buffer_bytes = 32 << 20;  // in all queues together
  double share = 0;   // one lane of one port has at most `share` times the free bytes; 0: no limit
  uint8_t hops = 16;  // a packet that so many switches have forwarded is dropped
  Service service = Service::strict;
  Keeps keeps = Keeps::until_decided;
  std::string_view meter = "none";  // of congestion::port_meters()
  Duration base_rtt{8000};          // for the meters
  uint32_t seed = 0;        // of choices by chance; switches of one fabric have different ones
  bool histograms = false;  // keeps a QueueHistogram for each lane
};

// One port: its line, and what is at the other end.
struct SwitchPort {
  uint64_t bytes_per_second = 0;  // 0: unlimited
  bool host = false;  // it leads to hosts, whose addresses are attached, and not to a switch
  // For a port to a switch: packets are dropped unless a route to their source leads through it.
  bool checks_routes = false;
  uint64_t queue_bytes = UINT64_MAX;  // in the queue of one lane
  Marking marking = {};
};

// The decision of a switch about a packet.
struct Arrival {
  Drop drop = Drop::none;
  uint32_t port = 0;     // through which the packet leaves, or which counts the drop
  Time departs = never;  // when its last byte leaves; `never` if this is not decided yet
};

// A packet that leaves, and when its last byte does.
struct Departure {
  Packet packet;
  Time departs;
};

// The counters of one lane of a port. The queue is the bytes that are ahead of an accepted packet.
struct LaneCounters {
  uint64_t packets = 0;    // that have left
  uint64_t bytes = 0;      // that have left
  uint64_t marked = 0;     // got an ECN mark here
  uint64_t congested = 0;  // were marked as congested by the port meter
  uint32_t least_queue = UINT32_MAX;
  uint32_t most_queue = 0;
};

// The counters of one port, all lanes together.
struct PortCounters {
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;
  // Packets for which no port could be chosen are counted by the port that received them, others
  // by the port that they would have left.
  std::array<uint64_t, drop_reasons> drops{};
  uint64_t dropped_bytes = 0;
  // The dropped packets whose departure the caller knew already. Always 0 with
  // Keeps::until_collected.
  uint64_t recalled = 0;
};

// The number of accepted packets that met a queue of 0 bytes, 1, 2 to 3, 4 to 7, and so on.
using QueueHistogram = std::array<uint64_t, 33>;
// Returns how many bytes of queue this share of the packets met at most, rounded up to the end of a
// step of the histogram; 0 if it is empty.
uint64_t queue_quantile(const QueueHistogram& histogram, double share);

// A switch with a queue for each lane of each port, in a shared buffer. It forwards whole packets:
// a packet is in its queue until its last byte has left. It does no I/O and reads no clock. The
// caller owns the packets, and passes times that never decrease. Used by one thread at a time.
//
// With one lane, the departure of a packet is known on arrival. With several lanes, a packet may
// have to wait until the line is free: at `due(port)` a simulator calls `decide`, a forwarder
// `collect`.
class Switch {
 public:
  // The meter of this name must exist. Each port is down until `connect`.
  explicit Switch(const SwitchSettings& settings);

  // ---- control

  // Counters and histograms of the port begin anew, unless the device that it had is back.
  void connect(uint32_t port, const SwitchPort& as, bool is_back = false);
  Routes& routes() { return routes_; }
  const SwitchSettings& settings() const { return settings_; }
  bool up(uint32_t port) const { return ports_[port].up; }
  void bring_up(uint32_t port, Time now);
  // Takes a port down, drops all packets in its queues, and returns those that the switch holds, at
  // most as many as `lost` has room for: the caller repeats the call until it returns 0.
  size_t take_down(uint32_t port, Time now, std::span<Packet> lost);

  // ---- the way of a packet

  // Takes a packet that has arrived at a port, and edits it. A dropped packet is not edited.
  Arrival arrive(Packet& packet, uint32_t from, Time now);
  // Fetches the memory that a call of `arrive` will need a little later.
  void prefetch(const Packet& packet, uint32_t from) const;
  // Returns when the caller must call `decide` or `collect` for a port; `never` if the port needs
  // no call before the next packet arrives.
  Time due(uint32_t port) const;
  // Decides which of the waiting packets leaves next, and when. Returns false if none waits, or
  // the line is not free at `now`. For Keeps::until_decided.
  bool decide(uint32_t port, Time now, Departure& departure);
  // Returns the next packet that has left by `now`, or false. For Keeps::until_collected.
  bool collect(uint32_t port, Time now, Departure& departure);

  // ---- what has happened. The times are those of the last call.

  // Counts the departures until `now` in counters and queues. Not needed before other calls.
  void settle(uint32_t port, Time now);
  const PortCounters& counters(uint32_t port) const { return ports_[port].counters; }
  const LaneCounters& counters(uint32_t port, uint32_t lane) const {
    return lanes_[number_of(port, lane)].counters;
  }
  uint64_t queue_bytes(uint32_t port, uint32_t lane) const {
    return lanes_[number_of(port, lane)].bytes;
  }
  // The bytes in all queues. Departures are counted when something happens at their port.
  uint64_t used_bytes() const { return used_bytes_; }
  // Null unless the settings ask for histograms.
  const QueueHistogram* histogram(uint32_t port, uint32_t lane) const {
    return histograms_.empty() ? nullptr : &histograms_[number_of(port, lane)];
  }
  // From now on, `least_queue` and `most_queue` of all lanes are measured anew.
  void restart_extremes();

 private:
  using List = PacketLists::List;
  using Slot = PacketLists::Slot;

  struct alignas(64) Lane {
    List waiting;
    uint64_t bytes = 0;   // waiting and decided
    uint64_t served = 0;  // the bytes that it has sent, or has missed because it was empty
    LaneCounters counters;
  };
  struct Port {
    Line line;
    List decided;          // in the order of departure
    uint64_t served = 0;   // `served` of the lane that was chosen last, before its packet
    uint32_t waiting = 0;  // a bit for each lane with waiting packets
    uint32_t held = 0;     // packets in all its queues
    bool up = false;
    SwitchPort as;
    PortCounters counters;
  };
  class Meter {
   public:
    Meter() = default;
    Meter(const Meter&) = delete;
    Meter& operator=(const Meter&) = delete;
    ~Meter() { clear(); }
    void make(const congestion::PortMeterKind& kind, const congestion::PortSettings& settings) {
      meter_ = kind.make(storage_, settings);
    }
    void clear() {
      if (meter_ != nullptr) meter_->~PortMeter();
      meter_ = nullptr;
    }
    congestion::PortMeter* get() { return meter_; }

   private:
    alignas(64) std::byte storage_[congestion::PortMeter::storage];
    congestion::PortMeter* meter_ = nullptr;
  };
  static_assert(sizeof(Meter) == 128, "a meter takes two cache lines");

  uint32_t number_of(uint32_t port, uint32_t lane) const { return port * settings_.lanes + lane; }
  congestion::PortMeter* meter_of(uint32_t lane_number) {
    return meters_.empty() ? nullptr : meters_[lane_number].get();
  }
  Drop check(const Packet& packet, uint32_t from) const;
  bool may_come_from(uint32_t source, uint32_t port) const;
  uint32_t choose(const Packet& packet) const;
  Drop admit(const Port& port, const Lane& lane, uint32_t bytes, Time now);
  Drop room_for(const Port& port, const Lane& lane, uint32_t bytes) const;
  Arrival drop(uint32_t port, Drop reason, uint32_t bytes);
  Time depart_behind(Port& port, uint32_t slot, Time earliest);
  Time wait(Port& port, uint32_t slot, Time now);
  uint32_t next_lane(const Port& port, uint32_t first_lane) const;
  uint32_t decide_next(Port& port, Time now);
  void count_queue(Lane& lane);
  void leave_queue(Port& port, uint32_t slot);
  void lose(Port& port, uint32_t slot);

  SwitchSettings settings_;
  // Whether departures are decided on arrival.
  bool early_;
  Routes routes_;
  std::vector<Port> ports_;
  std::vector<Lane> lanes_;
  std::vector<Meter> meters_;
  std::vector<QueueHistogram> histograms_;
  PacketLists held_;
  uint64_t used_bytes_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace urma::fabric
