#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// What lies in a window. Everything follows from its size; nothing in it is an address or an
// offset. Integers are the machine's own (little endian on all that we run on).

namespace urma::drivers::cxl {

inline constexpr size_t line_bytes = 64;
inline constexpr uint64_t magic = 0x314e'4957'414d'5255;  // "URMAWIN1"
inline constexpr uint32_t version = 3;

// Written once, under the lock; `magic` last.
struct alignas(line_bytes) Header {
  std::atomic<uint64_t> magic;
  std::atomic<uint32_t> version;
  std::atomic<uint32_t> rings;  // for people: it follows from `bytes`
  std::atomic<uint64_t> bytes;  // of the window
  std::atomic<uint64_t> id;     // random: what its addresses are made of
  std::atomic<uint64_t> boot;   // of the kernel whose locks say who lives
};
static_assert(sizeof(Header) == line_bytes);

// Grows whenever a place or a ring changes hands. Under the lock.
struct alignas(line_bytes) Changes {
  std::atomic<uint64_t> count;
};
static_assert(sizeof(Changes) == line_bytes);

// Who lives there. Under the lock; the generation is odd while somebody does.
struct alignas(line_bytes) PlaceRecord {
  std::atomic<uint32_t> generation;
};
// Where its owner sleeps (urma/base/bell.h).
struct alignas(line_bytes) PlaceBell {
  std::atomic<uint32_t> word;
};
struct Place {
  PlaceRecord record;
  PlaceBell bell;
};
static_assert(sizeof(Place) == 2 * line_bytes);
inline constexpr uint32_t places = 256;

// Whose a ring is. Under the lock; a serial of zero: nobody's yet. Each new owner gets another one,
// and while the record changes it is marked: who reads it without the lock reads the serial twice.
struct alignas(line_bytes) RingRecord {
  std::atomic<uint32_t> serial;
  std::atomic<uint32_t> from;  // place
  std::atomic<uint32_t> to;
  std::atomic<uint32_t> from_generation;
  std::atomic<uint32_t> to_generation;
};
static_assert(sizeof(RingRecord) == line_bytes);
inline constexpr uint32_t changing = 1u << 31;  // in a serial

// In front of a ring's lines. Lines of one writer are not neighbours of the other's.
struct RingControl {
  // Who receives.
  struct alignas(2 * line_bytes) Receiver {
    std::atomic<uint64_t> taken;   // lines, ever
    std::atomic<uint32_t> let_go;  // the serial under which it has: it will not touch it again
  } receiver;
  // Who sends.
  struct alignas(2 * line_bytes) Sender {
    std::atomic<uint32_t> let_go;
  } sender;
};
static_assert(sizeof(RingControl) == 4 * line_bytes);

struct alignas(line_bytes) Line {
  std::atomic<uint32_t> mark;  // of a message's first line
  std::byte content[line_bytes - sizeof(uint32_t)];
};
static_assert(sizeof(Line) == line_bytes);

// What a mark says: how many bytes follow it and, above these bits, in which lap of the ring it was
// written. What another lap has left there is nothing, and so is zero.
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

// Five large messages fit, and it stays in a level-two cache: with less two sides that copy wait
// for each other, with more small messages do for memory.
inline constexpr uint32_t ring_lines = 7 * 1024;
static_assert(ring_lines > 5 * lines_of(most_message_bytes));

struct Ring {
  alignas(4096) RingControl control;
  alignas(4096) Line lines[ring_lines];
};
inline constexpr uint32_t ring_bytes = sizeof(Ring);
static_assert(ring_bytes == 4096 + ring_lines * line_bytes);

// Header, changes, places, records; then, from a page on, the rings.
inline constexpr uint64_t page_bytes = 4096;
inline constexpr uint64_t places_at = 2 * line_bytes;
inline constexpr uint64_t records_at = places_at + places * sizeof(Place);
inline constexpr uint32_t most_rings = 1 << 20;
// Whoever changes one of these changes the version as well.
static_assert(version == 3 && ring_lines == 7 * 1024 && ring_bytes == 462848 && places == 256 &&
              records_at == 32896);

constexpr uint64_t rings_at(uint32_t rings) {
  const uint64_t end = records_at + uint64_t{rings} * sizeof(RingRecord);
  return (end + page_bytes - 1) / page_bytes * page_bytes;
}
constexpr uint32_t rings_in(uint64_t window_bytes) {
  if (window_bytes < records_at + page_bytes) return 0;
  const uint64_t rings =
      (window_bytes - records_at - page_bytes) / (ring_bytes + sizeof(RingRecord));
  return static_cast<uint32_t>(rings < most_rings ? rings : most_rings);
}
inline constexpr uint64_t least_window_bytes = 1 << 20;
static_assert(rings_in(least_window_bytes) >= 2);
static_assert(rings_at(rings_in(least_window_bytes)) + 2 * ring_bytes <= least_window_bytes);

}  // namespace urma::drivers::cxl
