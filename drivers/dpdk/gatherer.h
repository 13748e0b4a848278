// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "drivers/dpdk/gathered_frames.h"
#include "drivers/dpdk/readable_memory.h"
#include "wire/frame.h"

namespace urma::drivers::dpdk {

// Makes packets whose pieces stay where they are: a chain of the buffer with the head, a buffer
// without memory of its own for each large piece, and further buffers for what lies behind. The
// port reads the pieces later; `settle` says when it has. Owned by the packet port, and must
// outlive the port of DPDK; used by one thread at a time.
class Gatherer {
 public:
  struct Settings {
    // Smaller pieces are copied, because that costs less. `none`: all of them are.
    static constexpr uint32_t none = UINT32_MAX;
    uint32_t least_bytes = none;
    unsigned most_buffers = 1;    // of one packet, that the port sends
    rte_mempool* pool = nullptr;  // of the buffers
  };
  explicit Gatherer(const Settings& settings) : settings_(settings) {}

  // From now on, pieces in other memory are copied.
  void limit_to(const ReadableMemory& readable) { readable_ = &readable; }

  // Lays pieces and tail of the packet behind its head, which is at the front of `buffer`. `number`
  // is that of the frame, counted from 0 in the order of sending. Returns false, and changes
  // nothing, if the packet should be copied.
  bool chain(const TxFrame& frame, rte_mbuf& buffer, uint64_t number) {
    return settings_.least_bytes != Settings::none && wants(frame) &&
           make_chain(frame, buffer, number);
  }
  // Undoes the latest `chain` that was not undone, of a packet that the port has not taken.
  void undo_latest(rte_mbuf& buffer);

  // Returns whether the port may still read a piece.
  bool waits() const { return !frames_.empty(); }
  // GatheredFrames::settle
  uint64_t settle(uint64_t sent) { return frames_.settle(sent); }
  // Copies all packets from now on.
  void stop() { settings_.least_bytes = Settings::none; }

 private:
  bool stays(const Piece& piece) const;
  bool wants(const TxFrame& frame) const;
  bool make_chain(const TxFrame& frame, rte_mbuf& buffer, uint64_t number);

  Settings settings_;
  const ReadableMemory* readable_ = nullptr;  // null if the port reads any memory
  GatheredFrames frames_;
};

}  // namespace urma::drivers::dpdk
