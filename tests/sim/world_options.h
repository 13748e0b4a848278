// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/prng.h"
#include "drivers/impairment.h"

namespace urma::test {

// The failures that a world may have, drawn from the seed. Each kind is off in some worlds, so that
// rare combinations occur (swarm testing).
struct WorldOptions {
  uint32_t hosts = 2;
  uint32_t jetties = 2;  // for each host
  uint32_t berths = 32;
  uint32_t receives = 16;
  uint32_t works = 300;
  uint32_t mtu = 4096;
  uint64_t largest = 200'000;
  Duration hold{};  // delay after which the device reads memory
  drivers::Impairment impairment;
  double partition = 0;  // chance, for each act, of cutting a direction for a while
  double restart = 0;    // chance, for each act, that a host dies and restarts
  double flush = 0;      // chance, for each act, that a Jetty is flushed
  double unsignalled = 0;
  double forged = 0;  // chance of a work that must be refused
  double lazy = 0;    // chance that a host does not poll in a round
  bool reads = true;
  double shared = 0;        // chance that the Jetties of a host share a receive queue
  double notify = 0;        // chance that a write notifies
  double adds = 0;          // chance that a work adds to a counter
  double ordered = 0;       // chance that a work has an order, or a fence
  Duration idle_timeout{};  // of the hosts; if zero, the default
  bool window = false;  // the hosts share a window, which loses nothing; delays apply to its bells
  double stop = 0;      // chance, for each act, that a host is stopped for a while
  bool scarce = false;  // the window has just enough rings if those of dead devices are released
  bool mapped = false;  // segments lie in the window
  bool handed = false;  // each segment is a file of its own
  bool acted = false;   // the test double acts as caches that are not coherent
  bool modes = false;   // each incarnation of a host has its own mode of retransmission
  double leave = 0;     // chance that a host which restarts closes its device first
  Duration hold_jitter{};    // the device reads memory later still, at random up to this
  Duration settle{};         // delay after that until the device reports it
  Duration settle_jitter{};  // later still, at random up to this
  uint64_t ring = 0;         // frames that the device holds; 0 means any number
  double grouped = 0;        // chance that a message goes to the group of a host's Jetties
  double lend = 0;           // chance that a work reads memory that its owner sometimes revokes
  Duration operation_timeout = std::chrono::seconds(2);
  double rdma = 0;              // chance that the device of an incarnation accesses memory of peers
  double pair_fails = 0;        // chance, for each transfer, that its pair fails
  double pair_late = 0;         // chance that a transfer arrives late
  double stick = 0;             // chance, for each act, that no transfer arrives for a while
  int64_t slowness = 1;         // how many times longer than usual the time between two acts is
  uint64_t reach = UINT64_MAX;  // works use only so much of the memory
  // Two hosts at the ends of a pair of rings of DPDK; losses, cuts and delays are those of the
  // network, the rest of the impairment is that of a wrapper. `gather` is the option of the ports.
  bool rings = false;
  std::string_view gather = "never";
  bool impaired_by_wrapper() const {
    return impairment.duplicate > 0 || impairment.reorder > 0 || impairment.corrupt > 0 ||
           hold > Duration{} || hold_jitter > Duration{} || settle > Duration{} || ring > 0;
  }

  static WorldOptions drawn(Prng& prng);
  // Returns the same world in a window that is not cache-coherent.
  WorldOptions not_coherent() const;
  // Returns the same world on rings. Half of these have no wrapper, so that the rings name the
  // memory of the applications.
  WorldOptions on_rings(Prng& prng) const;
  WorldOptions in_window() const;
  // Returns the same world with messages to groups, and in most cases more Jetties.
  WorldOptions with_groups(Prng& prng) const;
  // Returns a similar world, if it is on a wire, in which devices access the memory of peers; in
  // most cases the same world.
  WorldOptions with_rdma(Prng& prng) const;
  std::string describe() const;
};

}  // namespace urma::test
