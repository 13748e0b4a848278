// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_sim/queue_samples.h"
#include "apps/urma_sim/scenario.h"
#include "drivers/sim/network.h"
#include "urma/urma.hpp"

namespace urma::apps::simulation {

// The hosts of a plan, each a device with its transport, on a network with switches.
class World {
 public:
  // The progress of one flow.
  struct Progress {
    uint64_t posted = 0;        // bytes
    uint64_t delivered = 0;     // bytes that completions have reported
    uint64_t acknowledged = 0;  // bytes of packets, when they were last counted
    Time begun = never;
    Time finished = never;  // of a flow with an end
    bool left = false;      // its host
  };

  World(const Plan& plan, const Choice& choice);

  // Lets each flow write once, so that its channel exists. Throws a Failure if one cannot.
  void connect();
  // Runs for a while. Returns false if there was Ctrl-C.
  bool run(Duration time);
  // Returns whether all flows with an end have ended.
  bool finished() const;

  Time now() const { return network_->now(); }
  // When the flows began: their starts are counted from here.
  Time begun() const { return begun_; }
  const std::vector<Progress>& flows() const { return progress_; }
  // Returns for each flow the bytes of its packets that were acknowledged, with headers. Unlike
  // completions these are counted packet by packet. No two flows leave from one host.
  std::vector<uint64_t> acknowledged();
  // Returns the counters of all devices, added up.
  Statistics statistics();
  // Returns the control that the devices use, and why if it is not the one that was asked for.
  Setting control();
  drivers::sim::Network& network() { return *network_; }
  // The port whose queue is measured.
  Switches::Port bottleneck();
  // Samples of its queue, all lanes together, since the last call of `begin_samples`.
  const QueueSamples& queue() const { return queue_; }
  void begin_samples() { queue_ = {}; }

 private:
  struct Host {
    Device device;
    std::vector<std::byte> memory;
    Segment segment;
  };
  struct Sender {
    Jetty jetty;
    Imported target;
  };

  bool has_left(uint32_t flow);
  void advance(Time until);
  void feed(uint32_t flow);
  void collect(uint32_t flow);
  Failure lost_flow(uint32_t flow, Status status) const;

  const Plan& plan_;
  const Choice choice_;
  std::vector<std::byte> data_;  // that all flows write; outlives the devices
  std::shared_ptr<drivers::sim::Network> network_;
  std::vector<Host> hosts_;
  std::vector<Sender> senders_;
  std::vector<Progress> progress_;
  QueueSamples queue_;
  Time next_sample_{};
  Time begun_ = never;
};

}  // namespace urma::apps::simulation
