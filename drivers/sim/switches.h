// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/impairment.h"
#include "fabric/network.h"

namespace urma::drivers::sim {

// The switches of a network with `topology=`, and the cables between them and to its devices. Each
// address of the network is a host of the topology, in the order in which they are first opened.
// All packets to one host share the line of its cable. The network owns it and keeps its time.
class Switches final : private fabric::Watcher {
 public:
  enum class Shape : uint8_t {
    star,        // one switch
    parking,     // a chain of hops + 1 switches: fabric::ParkingLot says which host is where
    leaf_spine,  // two tiers: host n is at leaf n / leaf_hosts
  };
  struct Settings {
    Shape shape = Shape::star;
    uint32_t hops = 3;                              // parking: between switches
    uint32_t pairs = 1;                             // parking: of hosts beside each hop
    uint32_t leaves = 4;                            // leaf_spine
    uint32_t leaf_hosts = 4;                        // leaf_spine: at each leaf
    uint32_t spines = 2;                            // leaf_spine
    fabric::CableKind trunk = {0, Duration(1000)};  // between switches; rate 0: unlimited
    // The marks and queues of ports that lead to switches, and the marks of those that lead to
    // hosts without `mark=`.
    fabric::SwitchPort each_port = {};
    uint32_t lanes = 1;
    std::string meter = "none";       // of congestion::port_meters()
    uint32_t unmetered = UINT32_MAX;  // a switch without meters, although others have them
    Duration base_rtt{8000};          // for the meters
    uint32_t packet_bytes = 9216;     // the largest packet; for the meters, too
    uint32_t seed = 0;
  };
  // Settings that `topology=` can have.
  static constexpr uint32_t most_hosts = 8192;
  static constexpr uint32_t most_hops = 8;

  // Returns the shape of this name; nothing if there is none.
  static std::optional<Shape> shape_of(std::string_view name);
  static std::string_view name_of(Shape shape);

  explicit Switches(const Settings& settings);

  const Settings& settings() const { return settings_; }
  uint32_t hosts() const { return hosts_; }  // that the topology has
  // Gives a host its cable: rate, queue, mark and delay of `line`. The rate and the delay apply in
  // both directions.
  void connect(uint32_t host, const Impairment& line);

  // Sends a packet from one host to another. `packet.handle` is for the caller.
  void send(uint32_t from, uint32_t to, fabric::Packet packet);
  Time next_event() const { return network_.next_event(); }
  // Runs until the next packet has arrived, and returns true. If none arrives, runs until `until`
  // and returns false.
  bool next(Time until, fabric::Packet& arrived);
  // Sets `packet` to a lost packet that was not returned before. Returns false if there is none.
  bool take_lost(fabric::Packet& packet);

  // For measurements: the simulated switches, and the port that leads to a host.
  fabric::Network& network() { return network_; }
  struct Port {
    fabric::Switch& at;
    uint32_t number;
  };
  Port port_to(uint32_t host);

 private:
  void lost(const fabric::Packet& packet) override { lost_.push_back(packet); }

  Settings settings_;
  uint32_t hosts_;
  fabric::Network network_;
  std::vector<fabric::Packet> lost_;  // not yet returned by `take_lost`
};

}  // namespace urma::drivers::sim
