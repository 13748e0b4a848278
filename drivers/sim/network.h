#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/prng.h"
#include "drivers/driver.h"
#include "drivers/frame_pool.h"
#include "drivers/impairment.h"
#include "drivers/lateness.h"
#include "drivers/sim/switches.h"
#include "drivers/sim/wakes.h"

namespace urma::drivers::sim {

class Port;
class ClockedPort;

// The medium of all ports with one name, and their clock: carries packets, delays or loses them by
// the ports' settings, and advances virtual time from event to event. All random decisions follow
// from a seed. One thread at a time uses it, except for `named`.
class Network final : public VirtualClock {
 public:
  static constexpr size_t packet_capacity = 9216;

  explicit Network(uint64_t seed);

  // Returns the network of this name in this process. It is made with `seed` if it does not exist.
  // Any thread may call it.
  static std::shared_ptr<Network> named(const std::string& name, uint64_t seed);

  // Puts switches into the middle of the network, through which all packets go from then on.
  // Returns false if there are none, and there are ports already. Later calls change nothing.
  bool use_switches(const Switches::Settings& settings);

  // VirtualClock
  Time now() const override { return now_; }
  void attach(Driven& driven, const Endpoint& at) override;
  void detach(Driven& driven) override;
  void poke(Driven& driven) override;
  bool step(Time until) override;
  uint64_t seed() override { return prng_.next(); }

  // ---- for tests: faults of the wire

  // The impairment of every packet, in addition to that of its port.
  Impairment impairment;
  // Longer packets are lost.
  size_t largest_packet = packet_capacity;
  // Called with each packet that a port has read from memory, before any impairment. The packet is
  // as it could be seen on the wire.
  std::function<void(const Endpoint& from, std::span<const std::byte> packet)> on_leave;
  // Loses packets from `from` to `to`, in this direction only, that are longer than `longest`; if
  // `severed` is false, loses them no longer.
  void cut(const Endpoint& from, const Endpoint& to, bool severed, size_t longest = 0);
  // Kills the process at this address: nothing is sent from or delivered to it.
  void kill(const Endpoint& at);
  // Stops the process at this address, so that its engine is not run, or lets it continue.
  void stop(const Endpoint& at, bool stopped);
  // Returns a hash of everything delivered: the time, source, destination, length, ECN field and
  // transport header.
  uint64_t trace_hash() const { return trace_hash_; }
  uint64_t packets_sent() const { return sent_; }
  // Returns the switches of `topology=`, or null.
  Switches* switches() { return switches_.get(); }
  // Returns the host of the switches that has this address; `none` if there is none.
  uint32_t host_of(const Endpoint& at) const;
  // Returns the counters of the line from the switches to an address that was opened.
  fabric::LaneCounters counters_to(const Endpoint& at);
  // Returns the number of packets that were lost because the network holds no more at a time.
  uint64_t overflowed() const { return overflowed_; }
  // Returns the number of packets that were delivered with flipped bits.
  uint64_t corrupted() const { return corrupted_; }

 private:
  friend class Port;
  friend class ClockedPort;

  static constexpr uint32_t none = UINT32_MAX;
  static constexpr uint32_t packets = 64 * 1024;

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
  struct Packet {
    Endpoint from;
    Endpoint to;
    uint32_t from_place;
    uint32_t to_place;  // `none` if the network did not know the address yet
    uint32_t bytes;
    bool corrupt;
    Ecn ecn;
    uint8_t switch_queue = 0;
    uint16_t cci = 0;
  };
  struct Engine {
    Driven* driven = nullptr;  // null once detached
    Time next{};
    Duration most_late{};  // `scheduling_delay` of its ports
    bool stopped = false;
  };
  // An address of the network: what is there, and how its packets get there.
  struct Place {
    Endpoint at;
    Port* port = nullptr;
    std::vector<uint32_t> engines = {};  // indices
    uint32_t host = none;                // of the switches
    bool dead = false;
  };
  struct Hash {
    size_t operator()(const Endpoint& at) const;
  };
  struct Cut {
    Endpoint from;
    Endpoint to;
    size_t longest;
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
  void plan(uint32_t engine);
  void run(uint32_t engine);
  void run_port_at(Port& port, Time at);
  void hear_bells();
  Duration late(const Engine& engine);
  Time next_event() const;
  void advance(Time to);
  void handle(const Event& event);
  void leave(uint32_t packet);
  void deliver(uint32_t packet);
  // `bytes`: the part of the packet that is the same in each run.
  void trace(const Endpoint& from, const Endpoint& to, uint32_t length,
             std::span<const std::byte> bytes);
  bool severed(uint32_t from, uint32_t to, size_t bytes) const;
  std::byte* bytes_of(uint32_t packet) {
    return storage_.data() + size_t{packet} * packet_capacity;
  }
  void put_back(uint32_t packet) { free_.push_back(packet); }

  Time now_{std::chrono::milliseconds(1)};
  Prng prng_;
  uint64_t order_ = 0;
  uint64_t sent_ = 0;
  uint64_t corrupted_ = 0;
  uint64_t overflowed_ = 0;
  uint64_t trace_hash_ = 0xcbf29ce484222325;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  Region storage_;
  std::vector<Packet> headers_;
  std::vector<uint32_t> free_;
  std::vector<Port*> ports_;                 // null once removed
  std::vector<ClockedPort*> clocked_ports_;  // null once removed
  std::vector<Engine> engines_;
  std::unordered_map<const Driven*, uint32_t> engine_of_;
  Wakes wakes_;  // of engines that are not stopped
  std::vector<Place> places_;
  std::unordered_map<Endpoint, uint32_t, Hash> place_of_;
  std::unique_ptr<Switches> switches_;  // null without a topology
  uint32_t hosts_ = 0;                  // of the switches, that have an address
  std::vector<Cut> cuts_;
  std::vector<std::byte> leaving_;  // the packet that `on_leave` is called with
  uint32_t next_address_ = 1;
};

// The bytes of a packet with a payload of `mtu` bytes, at most.
constexpr uint32_t packet_bytes(uint32_t mtu) {
  return mtu + TxFrame::head_room + TxFrame::tail_room;
}

// A port of the network, which it keeps alive. Only the thread that runs the engine calls it.
class Port final : public PacketPort {
 public:
  struct Settings {
    Eid address;  // the next free address if all zero
    uint32_t mtu = 4096;
    uint32_t buffer_bytes = 4 << 20;
    Impairment impairment;
    Lateness lateness;
    Duration scheduling_delay{};
    // If set, the network must have switches. The settings are those of the first such port.
    std::optional<Switches::Settings> switches = {};
    SettingList options = {};  // the options as they were read, for PortFacts::settings
  };
  static Result<std::unique_ptr<PacketPort>> open(const std::shared_ptr<Network>& network,
                                                  const Settings& settings);
  ~Port() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return counters_; }
  size_t lend(std::span<TxFrame*> frames) override;
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override { return held_.settled(); }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return {}; }
  VirtualClock* clock() override { return network_.get(); }

 private:
  friend class Network;
  static constexpr uint32_t frame_count = 1024;

  Port(std::shared_ptr<Network> network, const Settings& settings);
  void run_device();
  void plan();

  std::shared_ptr<Network> network_;
  const Settings settings_;
  PortFacts facts_;
  PortCounters counters_;
  ImpairedLine line_;      // for the impairment of this port
  ImpairedLine wire_;      // for that of the network, of packets that this port sends
  Impairment impairment_;  // without what the cable of a host of the switches has
  uint32_t index_ = 0;
  uint32_t place_ = 0;
  FramePool pool_{frame_count};
  LateFrames held_;  // frames in the device
  Time planned_ = never;
  // Packets that have arrived, oldest first.
  std::vector<uint32_t> inbox_;
  size_t inbox_first_ = 0;
  size_t inbox_count_ = 0;
  uint64_t inbox_bytes_ = 0;
};

}  // namespace urma::drivers::sim
