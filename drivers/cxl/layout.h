// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/region.h"
#include "urma/core/segment_options.h"

// The layout of a window. All of it follows from the size; no word that is read from a window is
// used as an address or an offset. Integers are in the machine's byte order (little endian on all
// machines that this library runs on).

namespace urma::drivers::cxl {

inline constexpr size_t line_bytes = 64;
inline constexpr uint64_t magic = 0x314e'4957'414d'5255;  // "URMAWIN1"
inline constexpr uint32_t version = 10;

// Written once, under the lock; `magic` last.
struct alignas(line_bytes) Header {
  std::atomic<uint64_t> magic;
  std::atomic<uint32_t> version;
  std::atomic<uint32_t> rings;  // for people; it follows from `bytes`
  std::atomic<uint64_t> bytes;  // of the window
  std::atomic<uint64_t> id;     // a random number, from which the addresses in the window are made
  std::atomic<uint64_t> boot;   // of the kernel whose locks say which processes are alive
  std::atomic<uint32_t> coherent;
};
static_assert(sizeof(Header) == line_bytes);

// Counts how often a slot or a ring has changed its owner. Written under the lock.
struct alignas(line_bytes) Changes {
  std::atomic<uint64_t> count;
  // So many devices cannot interrupt the users of segments. Unless it is 0, each use takes a fence
  // (barriers.h).
  std::atomic<uint32_t> fences;
};
static_assert(sizeof(Changes) == line_bytes);

// The device in a slot. Written under the lock; the generation is odd while a device is there.
struct alignas(line_bytes) SlotRecord {
  std::atomic<uint32_t> generation;
  // Incremented by each device that has left a request or an answer at this device's socket.
  std::atomic<uint32_t> notifications;
  std::atomic<uint32_t> fences;  // 1 if this device is counted in Changes::fences
  // The slot of the device's first engine, which is this one if it has no other, and the generation
  // of that slot then.
  std::atomic<uint32_t> first;
  std::atomic<uint32_t> first_generation;
};
// The bell at which the slot's owner sleeps (base/bell.h).
struct alignas(line_bytes) SlotBell {
  std::atomic<uint32_t> word;
};
// The segment that the slot's owner is reading or writing at this moment: its number and one, or
// zero. The device that revokes a segment waits until no slot names it.
struct alignas(line_bytes) SlotHold {
  std::atomic<uint32_t> segment;
  std::atomic<uint32_t> lanes;  // so many of its lanes, from the first one on, may hold segments
};
// The segment that one thread of the slot's owner is reading or writing at this moment, by itself.
struct alignas(line_bytes) LaneHold {
  std::atomic<uint32_t> segment;
};

// A slot of the window, which belongs to one device at a time.
struct Slot {
  SlotRecord record;
  SlotBell bell;
  SlotHold hold;
};
static_assert(sizeof(Slot) == 3 * line_bytes);
inline constexpr uint32_t slot_count = 256;
inline constexpr uint32_t no_slot = slot_count;  // instead of a slot's number

// The pair that a ring belongs to. Written under the lock; the serial is zero while it belongs to
// none. Each new pair gets another serial, which is marked while the record changes; a reader
// without the lock reads the serial before and after the record.
struct alignas(line_bytes) RingRecord {
  std::atomic<uint32_t> serial;
  std::atomic<uint32_t> from;  // slot
  std::atomic<uint32_t> to;
  std::atomic<uint32_t> from_generation;
  std::atomic<uint32_t> to_generation;
};
static_assert(sizeof(RingRecord) == line_bytes);
inline constexpr uint32_t changing = 1u << 31;  // in a serial

// The header in front of a ring's lines. Lines with different writers are not adjacent.
struct RingControl {
  // Written by the receiving end.
  struct alignas(2 * line_bytes) Receiver {
    std::atomic<uint64_t> taken;   // lines, since the ring was given to its pair
    std::atomic<uint32_t> let_go;  // the serial of the pair for which this end has given up the
                                   // ring, which it will not access again
  } receiver;
  // Written by the sending end.
  struct alignas(2 * line_bytes) Sender {
    std::atomic<uint32_t> let_go;
  } sender;
};
static_assert(sizeof(RingControl) == 4 * line_bytes);

// A cache line of a ring. A message begins with a line, and continues in the next ones.
struct alignas(line_bytes) Line {
  std::atomic<uint32_t> mark;  // of a message's first line
  std::byte content[line_bytes - sizeof(uint32_t)];
};
static_assert(sizeof(Line) == line_bytes);

// A mark says how many bytes follow it and, above these bits, in which lap of the ring it was
// written. A mark of another lap counts as none, and so does zero.
inline constexpr uint32_t mark_bytes_bits = 17;
inline constexpr uint32_t one_lap = 1 << mark_bytes_bits;
inline constexpr uint32_t nothing_yet = 0;
inline constexpr uint32_t goes_on_at_the_beginning = one_lap - 1;  // instead of bytes

// A slice and its headers.
inline constexpr uint32_t most_message_bytes = 64 * 1024 + 256;
static_assert(most_message_bytes < goes_on_at_the_beginning);
constexpr uint32_t lines_of(uint32_t message_bytes) {
  return (message_bytes + uint32_t{sizeof(uint32_t)} + uint32_t{line_bytes} - 1) /
         uint32_t{line_bytes};
}

// A ring has room for five large messages, and stays in a level-two cache. In a smaller ring two
// sides that copy wait for each other; in a larger one small messages wait for memory.
inline constexpr uint32_t ring_lines = 7 * 1024;
static_assert(ring_lines > 5 * lines_of(most_message_bytes));

// A ring as it lies in the window: messages of one direction between one pair of devices.
struct Ring {
  alignas(4096) RingControl control;
  alignas(4096) Line lines[ring_lines];
};
inline constexpr uint32_t ring_bytes = sizeof(Ring);
static_assert(ring_bytes == 4096 + ring_lines * line_bytes);

// A segment in the window is a row of granules; the record of the first one, which is the segment's
// number, says what it is. `granules` and `owner` are set under the lock; a record without an owner
// is free memory. The owner gives the memory back without the lock. The owner writes the other
// fields while `epoch` is even. While `epoch` is odd, devices that have stored the segment in their
// slots (SlotHold) may read and write the memory. If the owner has died, the device that needs the
// memory makes the epoch even.
struct alignas(line_bytes) SegmentRecord {
  std::atomic<uint64_t> epoch;
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> granules;
  std::atomic<uint32_t> owner;  // slot; `no_slot`: given back, while a device held it
  std::atomic<uint32_t> owner_generation;
  std::atomic<uint32_t> token_id;
  std::atomic<uint32_t> token;
  std::atomic<uint32_t> older_token;  // also valid; equal to the newer one if only one is valid
  std::atomic<uint32_t> rights;
  std::atomic<uint32_t> atomics;    // AtomicDomain
  std::atomic<uint32_t> unchecked;  // not 0: it needs no token
  std::atomic<uint32_t>
      file;  // not 0: the segment lies in the owner's file with this number (own_files.h)
};
static_assert(sizeof(SegmentRecord) == line_bytes && offsetof(SegmentRecord, granules) == 16 &&
              offsetof(SegmentRecord, file) == 52);

constexpr bool is_open(uint64_t epoch) { return epoch % 2 == 1; }

// After this call and Barriers::after_closing, no device begins to use the segment, and the devices
// that have begun are visible in their slots (`Holder::hold`). Returns whether the record was open.
inline bool close_to_all(SegmentRecord& record) {
  const uint64_t epoch = record.epoch.load(std::memory_order_relaxed);
  if (!is_open(epoch)) return false;
  record.epoch.store(epoch + 1, std::memory_order_release);
  return true;
}

// How the parts of a window follow from its size: header, changes, slots, records, holds of lanes;
// from a page on the rings; then, in its last half unless it is small, segments.
inline constexpr uint64_t slots_at = 2 * line_bytes;
inline constexpr uint64_t records_at = slots_at + slot_count * sizeof(Slot);
inline constexpr uint64_t least_window_bytes = 1 << 20;
inline constexpr uint32_t most_rings = 1 << 20;
inline constexpr uint32_t most_granules = 1 << 14;
inline constexpr uint64_t least_granule_bytes = 64 * 1024;
inline constexpr uint64_t least_with_segments = 8 << 20;

// Where the parts of a window of this size lie, in bytes from its beginning.
struct Parts {
  uint64_t granule_bytes = least_granule_bytes;
  uint32_t granules = 0;
  uint32_t rings = 0;
  uint64_t segments_at = 0;  // their records
  uint64_t lanes_at = 0;     // their holds, where there are segments
  uint64_t rings_at = 0;
  uint64_t memory_at = 0;

  static constexpr Parts of(uint64_t window_bytes) {
    Parts out;
    const uint64_t memory = window_bytes < least_with_segments ? 0 : window_bytes / 2;
    while (memory / out.granule_bytes > most_granules) out.granule_bytes *= 2;
    out.granules = static_cast<uint32_t>(memory / out.granule_bytes);
    const uint64_t lanes =
        out.granules == 0 ? 0 : uint64_t{slot_count} * max_lanes * sizeof(LaneHold);
    const uint64_t fixed = records_at + page_bytes + lanes +
                           uint64_t{out.granules} * (sizeof(SegmentRecord) + out.granule_bytes);
    if (window_bytes < fixed) return out;
    const uint64_t rings = (window_bytes - fixed) / (ring_bytes + sizeof(RingRecord));
    out.rings = static_cast<uint32_t>(rings < most_rings ? rings : most_rings);
    out.segments_at = records_at + uint64_t{out.rings} * sizeof(RingRecord);
    out.lanes_at = out.segments_at + uint64_t{out.granules} * sizeof(SegmentRecord);
    out.rings_at = (out.lanes_at + lanes + page_bytes - 1) / page_bytes * page_bytes;
    out.memory_at = window_bytes / page_bytes * page_bytes - out.granules * out.granule_bytes;
    return out;
  }
};
constexpr bool fits(uint64_t window_bytes) {
  const Parts parts = Parts::of(window_bytes);
  return parts.rings >= 2 &&
         parts.rings_at + uint64_t{parts.rings} * ring_bytes <= parts.memory_at &&
         parts.memory_at + parts.granules * parts.granule_bytes <= window_bytes;
}
static_assert(fits(least_window_bytes) && fits(least_with_segments) && fits(1 << 30) &&
              fits((uint64_t{1} << 46) - 1) && fits(least_with_segments + 4095));
// If one of these values changes, the version must change, too.
static_assert(version == 10 && max_lanes == 8 && ring_lines == 7 * 1024 && ring_bytes == 462848 &&
              slot_count == 256 && records_at == 49280 && sizeof(SegmentRecord) == 64 &&
              Parts::of(1 << 30).rings == 1158 && Parts::of(1 << 30).granules == 8192);

// The address of a byte in a segment of the window consists of the segment's number and the offset
// of the byte. It is the same in all processes, and differs from every address of private memory
// (RemoteSegment::mapped).
inline constexpr uint64_t in_the_window = uint64_t{1} << 63;
inline constexpr unsigned offset_bits = 46;
static_assert(most_granules <= 1u << (63 - offset_bits));
constexpr uint64_t address_of(uint32_t segment, uint64_t offset) {
  return in_the_window | uint64_t{segment} << offset_bits | offset;
}

}  // namespace urma::drivers::cxl
