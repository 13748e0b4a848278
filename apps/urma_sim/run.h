// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/urma_sim/scenario.h"

namespace urma::apps::simulation {

class World;

// The measurements of a run.
struct Result {
  struct FlowResult {
    uint32_t from = 0;
    uint32_t to = 0;
    double bytes_per_second = 0;  // while it was measured
    double fair_share = 0;        // of a cable; 0: not known
    double seconds = 0;           // of a flow that has ended; 0: it has not
    double slowdown = 0;          // of a flow that has ended: its time / that of a flow alone
  };
  // The queue of the measured port, in bytes, with the packet that is being sent. `most` is that of
  // the whole run and of one lane, all others are of samples of all lanes.
  struct Queue {
    uint64_t most = 0;
    uint64_t p50 = 0, p99 = 0, p999 = 0;
    std::vector<uint64_t> histogram = {};  // samples with 0 packets, up to 1, up to 2, and so on

    static double packets(uint64_t bytes) { return static_cast<double>(bytes) / packet_bytes; }
  };

  std::string control;  // in effect
  std::string why;      // and why, if it is not the one that was asked for
  std::vector<FlowResult> flows;
  Queue queue;
  double utilisation = 0;      // of what all flows can have; 0: not known
  double jain = 0;             // of the rates, each divided by its fair share if that is known,
                               // without flows that write at times
  double off_fair = 0;         // the largest difference to a fair share, as a fraction of it
  bool complete = true;        // all flows with an end have ended
  double last_over_ideal = 0;  // the end of the last flow / the least time that all flows need
  double join_rounds = 0, leave_rounds = 0;  // J1; infinity: it never settled
  uint64_t marked = 0;                       // by ECN, at all switches
  uint64_t congested = 0;                    // packets that port meters answered with C
  uint64_t dropped = 0;
  uint64_t packets = 0;  // that hosts have sent
  uint64_t retransmitted = 0;
  uint64_t timeouts = 0;
  uint64_t trace_hash = 0;
  double virtual_seconds = 0;
  double seconds = 0;  // that the run took
};

// Runs the plan in a new world that was made of both. Throws a Failure, also after Ctrl-C.
Result run(World& world, const Plan& plan, const Choice& choice);

// A trace hash as it is printed.
std::string hash_text(uint64_t hash);

}  // namespace urma::apps::simulation
