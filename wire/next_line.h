// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace urma {

// The memory in which the next packet of a way begins, as its driver has prepared it: a short
// packet is written there and sent without asking the driver first. The driver changes it after
// each packet; Ways::next_line.
struct NextLine {
  static constexpr uint32_t short_bytes = 60;  // of a packet in one cache line, behind its mark
  static constexpr uint32_t long_bytes = 124;  // in two
  std::byte* content = nullptr;                // of the packet
  std::atomic<uint32_t>* mark = nullptr;       // says that the packet is there, and its bytes
  uint32_t lap = 0;                            // in the mark, beside the bytes
  bool takes_short = false;
  bool takes_long = false;

  bool takes(uint32_t bytes) const {
    return bytes <= short_bytes ? takes_short : bytes <= long_bytes && takes_long;
  }
  // The packet is in place: from now on the receiver sees it.
  void send(uint32_t bytes) const { mark->store(lap | bytes, std::memory_order_release); }
};

}  // namespace urma
