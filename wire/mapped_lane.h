// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/use_fence.h"
#include "wire/memory_range.h"

namespace urma {

// A segment of another device, as one thread uses it by itself, without the engine: says where it
// is mapped, and has the words by which the thread and the segment's owner see each other. Made by
// Ways::open_lane. One thread at a time uses it; the words are shared, and stay mapped while the
// device exists.
struct MappedLane {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Rights rights = Rights::local_only;
  // Even while the segment is closed; changes when it is closed.
  const std::atomic<uint64_t>* epoch = nullptr;
  uint64_t opened = 0;
  // Changes when the owner's device is over.
  const std::atomic<uint32_t>* owner = nullptr;
  uint32_t generation = 0;
  // Changes when this device is over: then its slot and holds are another one's.
  const std::atomic<uint32_t>* own = nullptr;
  uint32_t own_generation = 0;
  const std::atomic<uint32_t>* fences = nullptr;  // base/use_fence.h
  // Names the segment while this thread uses it. The lane has this word until it is closed; it is
  // null if the lane was never opened.
  std::atomic<uint32_t>* hold = nullptr;
  uint32_t name = 0;
  uint32_t number = 0;  // of the lane, in its device

  // Begins a use, which `let_go` ends, soon: until then the owner cannot reuse the memory. Returns
  // false if none has begun, because the segment is closed, or one of the two devices is over.
  bool take() const {
    if (own->load(std::memory_order_relaxed) != own_generation) [[unlikely]]
      return false;
    hold->store(name, std::memory_order_relaxed);
    fence_before_use(*fences);
    const bool open = epoch->load(std::memory_order_acquire) == opened &&
                      owner->load(std::memory_order_acquire) == generation;
    if (!open) [[unlikely]]
      end();
    return open;
  }
  // Returns false if the segment was closed meanwhile: what was stored may be lost, and what was
  // loaded may be anything.
  bool let_go() const {
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool still = epoch->load(std::memory_order_relaxed) == opened;
    end();
    return still;
  }

 private:
  void end() const { hold->store(0, std::memory_order_release); }
};

// A segment that the medium has let a flow use: the thread that runs the engine uses it again
// without asking the medium. The token that was valid then is valid now, because a segment is
// closed before a token of it ends.
struct PreparedSegment {
  MappedLane lane;
  uint64_t address = 0;  // of the segment's first byte, in the owner's address space
  TokenId id{};
  TokenValue token{};

  // Begins a use of this range, and returns its address here. Returns null if it is not one of this
  // segment, or the segment was closed since: `Ways::hold` then says whether it can be used.
  [[gnu::always_inline]] std::byte* take(const MemoryRange& range) const {
    const uint64_t offset = range.address - address;
    const bool covered = offset <= lane.bytes && range.bytes <= lane.bytes - offset;
    if (!covered || range.id != id || range.token != token || !has(lane.rights, range.wanted)) {
      return nullptr;
    }
    return lane.take() ? lane.base + offset : nullptr;
  }
};

// Why a lane was not opened.
enum class Laned : uint8_t {
  opened,
  unmapped,  // the medium does not map the segment, or hands it over as a file
  refused,   // the segment's record does not allow it, or is closed
  gone,      // the device that owned the segment is over
  none_free  // as many lanes are open as a device has
};

}  // namespace urma
