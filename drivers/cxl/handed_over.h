// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "drivers/cxl/granules.h"
#include "drivers/cxl/hand_over.h"
#include "drivers/cxl/slots.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// Segments of a window that lie in files of their own (share=segment): finds the memory of a
// segment that a record in the window names, or asks its owner for the file; and notifies owners,
// by their bells, that a request waits at their socket. HandOver owns the sockets and what was
// mapped; this class knows the records. Used by one thread at a time.
class HandedOver {
 public:
  HandedOver(HandOver& hand_over, const SharedWords& words, const Slots& slots,
             const Granules& granules, const std::atomic<bool>* moved)
      : hand_over_(hand_over), words_(words), slots_(slots), granules_(granules), moved_(moved) {}

  // Returns where this part of the segment lies in this process. Returns null if its owner has just
  // been asked for it, or has refused; then the caller sends a packet.
  std::byte* find(const HandOver::There& there, const MemoryRange& range, uint64_t offset);
  // Informs the device in a slot that a request or an answer waits at its socket.
  void notify(uint32_t slot) const;

  // Begins to watch this device's own slot, after it has joined.
  void watch();
  // Called in each pass. Returns whether a device has notified this one that something waits at its
  // socket, or whether it is time to check the socket anyway.
  bool has_work(Time now) {
    now_ = now;
    return notifications_->load() != seen_ || now >= hand_over_.due();
  }
  // Takes answers from other devices, and answers some of their requests.
  void handle_notifications();
  // Unmaps segments that their owners have given back. Their memory is freed only when no process
  // maps it any more.
  void forget_the_gone();

 private:
  [[gnu::cold]] std::byte* ask_for(const HandOver::There& there, const MemoryRange& range);
  bool lies_there(uint32_t segment, const HandOver::Name& name) const;

  HandOver& hand_over_;
  const SharedWords& words_;
  const Slots& slots_;
  const Granules& granules_;
  const std::atomic<bool>* const moved_;  // by segment: this device's own lie elsewhere now
  const std::atomic<uint32_t>* notifications_ = nullptr;
  uint32_t seen_ = 0;
  Time now_{};  // of the last pass
};

}  // namespace urma::drivers::cxl
