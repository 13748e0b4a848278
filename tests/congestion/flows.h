// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "congestion/controller.h"
#include "congestion/echo.h"
#include "fabric/network.h"
#include "tests/congestion/baselines.h"

namespace urma::test {

struct FlowsOptions {
  std::string_view algorithm;  // a controller of the library, or a baseline
  fabric::Topology topology = {};
  Duration base_rtt{8000};
  bool metered = true;              // otherwise no switch has a port meter
  uint32_t unmetered = UINT32_MAX;  // a switch that has none although others have
  fabric::Marking marking = {};
  uint64_t queue_bytes = UINT64_MAX;  // of each port; packets beyond are dropped
  uint32_t seed = 1;
};

struct FlowOptions {
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes_per_second = 12.5e9;  // of the sender's cable
  Time start{};
  Time stop = never;
  uint64_t bytes = UINT64_MAX;
  Duration base_rtt{};  // if zero, that of all flows
};

// Flows through a simulated fabric, each with a controller. A host sends at most one flow.
// Receivers acknowledge each packet. All packets of a flow take one path, so a packet is lost if a
// later one has arrived.
class Flows final : private fabric::Watcher {
 public:
  static constexpr uint32_t mtu = 4096;
  static constexpr uint32_t ack_bytes = 64;

  explicit Flows(const FlowsOptions& options);
  ~Flows() override;
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  void add(const FlowOptions& options);
  // Runs until the time, or until there are more packets than the simulation holds.
  void run(Time until);
  // Runs until all flows have finished, at most until the time. Returns the last completion, or
  // `never`.
  Time run_to_completion(Time until);
  // Counts shares, queues and round trips anew from now on.
  void begin_count();

  size_t size() const { return flows_.size(); }
  double rate(size_t flow) const;  // bytes per second, since the count began
  uint64_t delivered(size_t flow) const { return flows_[flow]->delivered; }  // bytes
  double round_trip(size_t flow) const;  // seconds, on average since the count began
  Time finished(size_t flow) const { return flows_[flow]->finished; }
  // Takes samples of the queue of this port at regular times from now on.
  void observe(uint32_t at, uint32_t port);
  // A quantile of the bytes in the observed queue, in packets; and the most of them.
  double queue_packets(double quantile) const;
  double peak_packets() const { return static_cast<double>(peak_) / mtu; }
  uint64_t drops();
  // Returns whether there were more packets than the simulation holds: the queues have no bound,
  // and yet packets were dropped.
  bool overloaded() { return options_.queue_bytes == UINT64_MAX && drops() > 0; }
  uint64_t trace_hash() const { return network_.trace_hash(); }
  Time now() const { return network_.now(); }

 private:
  struct Stamped {
    uint32_t place;  // in ports_
    Time departs;
    uint64_t sent_bytes;
  };
  // A packet between its departure and its acknowledgement.
  struct Record {
    uint64_t number;
    uint32_t bytes;
    Time sent;
    congestion::Feedback feedback{};
    bool notifies = false;
    double least_rate = 0;
    uint32_t hops = 0;
    std::array<Stamped, Stamps::most> stamped{};
  };
  struct Flow {
    FlowOptions options;
    alignas(16) std::byte storage[congestion::Controller::storage];
    std::unique_ptr<Baseline> baseline;
    congestion::Controller* controller = nullptr;
    congestion::Echo echo;
    std::deque<Record> records;
    uint64_t number = 0;
    uint64_t sent = 0;   // bytes, without repetitions
    uint64_t again = 0;  // bytes that have to be repeated
    uint64_t inflight = 0;
    uint64_t delivered = 0;
    uint64_t counted = 0;  // delivered when the count began
    Time line_free = Time::min();
    Time timer_at = never;
    Time progress{};
    bool times_out = false;  // a timer for a time-out runs
    Time finished = never;
    Time notified = Time::min();
    Duration smoothed{};
    Duration least = Duration::max();
    double round_trips = 0;  // seconds
    uint64_t samples = 0;
  };
  struct Port {
    double bytes_per_second = 0;
    uint64_t arrived = 0;  // bytes
    // The bytes that had arrived at each time, for the stamps of HPCC.
    std::vector<std::pair<Time, uint64_t>> log;
    std::unique_ptr<RcpPort> rcp;
  };

  void accepted(uint32_t at, uint32_t port, const fabric::Packet& packet, Time departs) override;
  uint32_t place_of(uint32_t at, uint32_t port) const { return first_port_[at] + port; }
  Stamps stamps_of(const Record& record) const;
  Duration base_of(const Flow& flow) const;
  Duration time_out(const Flow& flow) const;
  Record* find(Flow& flow, uint64_t number);
  void sample();
  void step(const fabric::Network::Happening& it);
  void try_send(uint32_t index);
  void send(uint32_t index, uint32_t bytes, bool again);
  void wait(Flow& flow, uint32_t index, Time until);
  void arrive(Flow& flow, uint32_t index, const fabric::Packet& packet);
  void acknowledge(Flow& flow, uint64_t number);
  void lose_until(Flow& flow, uint64_t number, bool timed_out);
  void look_for_time_out(Flow& flow, uint32_t index);

  FlowsOptions options_;
  const congestion::ControllerKind* kind_;
  congestion::Needs needs_;
  fabric::Network network_;
  std::vector<uint32_t> first_port_;  // of each switch, in ports_
  std::vector<Port> ports_;
  std::vector<std::unique_ptr<Flow>> flows_;
  Time count_began_{};
  size_t unfinished_ = 0;
  // The observed port.
  uint32_t switch_ = 0;
  uint32_t port_ = 0;
  std::vector<uint32_t> samples_;  // bytes
  uint64_t peak_ = 0;              // bytes
  bool hpcc_;
};

}  // namespace urma::test
