// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "urma/core/result.h"

namespace urma::drivers::dpdk {

// The interrupts of the receive queues of one port of DPDK: a descriptor that becomes readable when
// a packet arrives while they are on, or when the port or its connection has changed. It lasts,
// while the queues have others after each start of the port. Owned by the port's EtherDevice, and
// called by the thread that runs the port. EAL's threads and those of vhost report changes.
//
// Writers: `switching_` - the thread that runs the port; `changed_` - any thread, cleared by the
// thread that runs the port.
class ReceiveInterrupts {
 public:
  ReceiveInterrupts() = default;
  ~ReceiveInterrupts();
  ReceiveInterrupts(const ReceiveInterrupts&) = delete;
  ReceiveInterrupts& operator=(const ReceiveInterrupts&) = delete;

  // Creates the descriptor. Errors: no_resources.
  Result<void> open();
  // The descriptor, or nothing before `open`. The other functions then do nothing.
  std::span<const int> descriptors() const;

  // The port has been started. If its queues have no descriptors at the first start, no later one
  // is watched either: threads then have to poll, and `descriptors` is empty.
  void watch(uint16_t port, uint16_t queues);
  // The port is to be stopped.
  void forget();
  // Turns the interrupts on, and makes the descriptor unreadable. A packet that arrived before may
  // cause no interrupt.
  void arm();
  void disarm();
  // Returns whether the port or its connection has changed since the last call.
  bool take_change();
  // Called on other threads, between `watch` and `forget`.
  void handle_change();

 private:
  void close();
  void signal();
  void add(int descriptor) const;
  void turn(bool on);

  static constexpr int none = -1;

  int epoll_ = none;
  int event_ = none;  // watched by the epoll, for changes
  bool watches_ = false;
  bool armed_ = false;
  uint16_t port_ = 0;
  uint16_t queues_ = 0;
  std::atomic<bool> switching_{false};  // interrupts are being turned on or off
  std::atomic<bool> changed_{false};
};

}  // namespace urma::drivers::dpdk
