// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "plugins/nccl/abi.h"

namespace urma::nccl {

// Memory that a sender and a receiver share by works of the other one. Its layout is a part of the
// protocol (protocol_version).

inline constexpr uint32_t most_receives = 8;          // in a grouped receive
inline constexpr uint32_t slots = requests_per_comm;  // receives that may be outstanding

// One buffer of a receive.
struct ReceiveBuffer {
  uint64_t address;  // of its first byte, as RemoteSegment::address
  uint64_t bytes;
  uint64_t stage;  // in the receiver's board: where it also takes data; 0: nowhere
  uint32_t token_id;
  uint32_t token;
  int32_t tag;
  uint32_t unused;
};
static_assert(sizeof(ReceiveBuffer) == 40);

// One receive. The receiver writes the buffers, and then the mark: 1 + the number of receives
// before it, times 256, plus the number of its buffers.
struct alignas(64) Slot {
  ReceiveBuffer buffers[most_receives];
  uint64_t mark;
};

// Where a sender looks for the receives that its peer has posted.
struct SenderBoard {
  Slot slots[nccl::slots];
  uint64_t probe;  // written to learn whether this process is alive
};

// Where a receiver looks for data that has arrived. A word is 0, or 1 + the number of bytes that
// were written into the buffer; if its highest bit is set, they lie in the buffer's stage.
struct ReceiverBoard {
  uint64_t arrived[slots][most_receives];
  uint64_t probe;
  alignas(64) std::byte stages[];
};
inline constexpr uint64_t in_stage = uint64_t{1} << 63;
// If a board lies in memory that both processes map, works on it are copies by the process that
// posts them, and a word that is written after other memory of the board is seen after it: then
// nothing of a transfer is a packet. This holds for processors that keep the order of stores. The
// thread sanitizer does not know it, and tests the other way, notifications.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool stores_keep_order = true;
#else
inline constexpr bool stores_keep_order = false;
#endif
// Otherwise, data of up to this many bytes takes no way over the stage: it is one packet.
inline constexpr uint64_t most_packet_bytes = 4096;

inline uint64_t mark_of(uint64_t sequence, uint32_t buffers) {
  return (sequence + 1) << 8 | buffers;
}

// The device of this process stores the word after the memory to which it refers.
inline uint64_t load(const uint64_t& word) {
  return std::atomic_ref(const_cast<uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store(uint64_t& word, uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

}  // namespace urma::nccl
