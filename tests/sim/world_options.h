#pragma once

#include <string>

#include "base/prng.h"
#include "drivers/impairment.h"

namespace urma::test {

// The troubles that a world may have. Drawn from the seed, each kind of trouble off in some worlds,
// so that rare combinations are met (swarm testing).
struct WorldOptions {
  uint32_t hosts = 2;
  uint32_t jetties = 2;  // per host
  uint32_t berths = 32;
  uint32_t receives = 16;
  uint32_t works = 300;
  uint32_t mtu = 4096;
  uint64_t largest = 200'000;
  Duration hold{};  // how late the device reads memory
  drivers::Impairment impairment;
  double partition = 0;  // chance, per act, of cutting a direction for a while
  double restart = 0;    // chance, per act, that a host dies and comes back
  double flush = 0;      // chance, per act, that a Jetty is flushed
  double unsignalled = 0;
  double forged = 0;  // works that must be refused
  double lazy = 0;    // chance that a host does not poll in a round
  bool reads = true;
  double shared = 0;        // chance that the Jetties of a host share a receive queue
  double notify = 0;        // chance that a write notifies
  double adds = 0;          // chance that a work adds to a counter
  double ordered = 0;       // chance that a work has an order, or a fence
  Duration idle_timeout{};  // of its hosts; if zero, the default
  bool window = false;  // the hosts share a window, which loses nothing; delays are of their bells
  double stop = 0;      // chance, per act, that a host is stopped for a while
  bool scarce = false;  // there are just enough rings if those of the dead are returned
  bool mapped = false;  // their memory lies in it
  bool handed = false;  // each segment of it in a file of its own
  bool acted = false;   // the double acts caches that are not coherent
  bool modes = false;   // each life of a host has a mode of retransmission of its own
  double leave = 0;     // chance that a host which restarts closes its device first
  Duration hold_jitter{};    // the device reads memory later still, at random up to this
  Duration settle{};         // how long after that it says so
  Duration settle_jitter{};  // later still, at random up to this
  uint64_t ring = 0;         // frames that it holds; 0: any number
  double lend = 0;           // chance that a work reads memory that its owner takes back at times
  Duration operation_timeout = std::chrono::seconds(2);

  static WorldOptions drawn(Prng& prng);
  // The same world, in a window that is not coherent.
  WorldOptions not_coherent() const;
  WorldOptions in_window() const;
  std::string describe() const;
};

}  // namespace urma::test
