// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "congestion/controller.h"

namespace urma::test {

// A port's measurements, stamped on a packet. The wire has no such fields.
struct Stamp {
  uint32_t port = 0;
  Time departs{};
  uint64_t sent_bytes = 0;      // by the port, this packet included
  uint64_t queue_bytes = 0;     // at the departure
  double bytes_per_second = 0;  // of the port
};

struct Stamps {
  static constexpr size_t most = 4;  // ports on a path

  std::array<Stamp, most> of{};
  uint32_t count = 0;
  double least_rate = 0;  // that a port names; zero if none does
};

// A published algorithm, with which the library's controllers are compared. The library does not
// have it: HPCC and RCP need fields that the wire does not have.
class Baseline : public congestion::Controller {
 public:
  // Called before `handle` for each acknowledgement.
  virtual void read(const Stamps&) {}
};

// `name`: swift, hpcc or rcp. Returns null for another name.
std::unique_ptr<Baseline> make_baseline(std::string_view name, const congestion::Settings& settings,
                                        Duration base_rtt);

// The target delay of Swift for a window of so many packets, in base round trips.
double swift_target(double packets);

// The router's half of RCP: one rate for all flows of a port.
class RcpPort {
 public:
  RcpPort(double bytes_per_second, Duration base_rtt);
  // Returns the rate that the packet is stamped with.
  double arrive(Time now, uint32_t bytes, uint64_t queue_bytes);

 private:
  double line_rate_;
  double round_;  // seconds
  double rate_;
  double arrived_ = 0;
  Time interval_end_ = Time::min();
};

}  // namespace urma::test
