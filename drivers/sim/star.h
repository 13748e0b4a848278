#pragma once

#include <array>
#include <map>

#include "drivers/impairment.h"
#include "fabric/switch.h"
#include "urma/core/endpoint.h"

namespace urma::drivers::sim {

// The switch in the middle of a network with topology=star. It has a port for each address of the
// network, so that all packets to one device share the line to it. The network owns it.
class Star {
 public:
  static constexpr uint32_t most_ports = 8192;

  Star();

  // Connects an address by a line with this rate, queue, mark and delay. An address that is
  // connected again, by a process that restarts, keeps its port. Returns false if no port is left.
  bool connect(const Endpoint& at, const Impairment& line);

  // A packet that the switch forwards.
  struct Passage {
    Time arrives = never;  // at the device; `never` if the switch drops the packet
    Ecn ecn = Ecn::not_ect;
  };
  Passage pass(const Endpoint& from, const Endpoint& to, uint32_t bytes, Ecn ecn, Time now);

  // Returns the counters of the line to an address that was connected.
  fabric::LaneCounters counters_to(const Endpoint& at, Time now);

 private:
  struct Before {
    bool operator()(const Endpoint& a, const Endpoint& b) const {
      return a.address.bytes != b.address.bytes ? a.address.bytes < b.address.bytes
                                                : a.port < b.port;
    }
  };

  fabric::Switch switch_;
  std::map<Endpoint, uint32_t, Before> ports_;
  std::vector<Duration> delays_;  // by port
};

}  // namespace urma::drivers::sim
