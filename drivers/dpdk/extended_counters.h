// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/packet_port.h"

namespace urma::drivers::dpdk {

// The extended statistics of one port of DPDK, or its basic ones, which each port has. A thread
// reads them, because a NIC may take milliseconds to answer; the thread that runs the port only
// asks for them. Counters never decrease, although a port that is made anew counts from zero.
//
// Writers: `latest_` - the thread; `wanted_` - the thread that runs the port, and the destructor.
class ExtendedCounters {
 public:
  // `basic`: the extended statistics must not be read (Pmd::counts_connections).
  explicit ExtendedCounters(bool basic) : basic_(basic) {}
  ~ExtendedCounters();
  ExtendedCounters(const ExtendedCounters&) = delete;

  // The port has been made. The first call reads the names of its counters.
  void watch(uint16_t port);
  // The port is to be stopped or removed. Waits until the thread does not read it.
  void forget();
  // Starts the thread. Errors: no_resources.
  Result<void> start();

  // Describes what is counted; constant after `watch`.
  std::vector<ObservedMetric> metrics() const;
  // Writes the latest values to `out` and asks for new ones. Returns how many it wrote.
  size_t read(std::span<uint64_t> out);

 private:
  static constexpr size_t most = PacketPort::most_metrics;

  void run();
  void look();
  void read_basic();
  void read_extended();
  void note(size_t place, uint64_t value);
  void ask();

  bool basic_;  // constant after `watch`
  std::vector<std::string> names_;
  std::array<std::atomic<uint64_t>, most> latest_{};
  std::atomic<uint32_t> wanted_{0};
  std::atomic<bool> ended_{false};
  bool running_ = false;
  pthread_t thread_{};

  std::mutex mutex_;  // of the following
  bool watches_ = false;
  uint16_t port_ = 0;
  std::array<uint64_t, most> seen_{};    // what the port said last
  std::array<uint64_t, most> before_{};  // what it had counted before it began again
};

}  // namespace urma::drivers::dpdk
