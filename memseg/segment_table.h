#pragma once

#include "urma/base/region.h"
#include "urma/core/work.h"

namespace urma::memseg {

// The segments of one device. Engine thread only.
class SegmentTable {
 public:
  // At most 2^20 segments at a time (UB 9: TokenIDs have 20 bits).
  explicit SegmentTable(uint32_t capacity);

  struct Segment {
    std::byte* base;
    uint64_t bytes;
    TokenValue token;
    Rights rights;
    uint64_t address = reinterpret_cast<uint64_t>(base);  // by which others know its first byte
    AtomicDomain atomics = AtomicDomain::processor;
  };

  // False when the table is full. `base` and `address` plus `bytes` must not wrap.
  bool add(const Segment& segment, TokenId& id);
  // False when there is no such segment.
  bool remove(TokenId id);

  // Removes all.
  void clear();

  // Where `bytes` bytes at the owner's `address` lie, or null when the access is refused: no such
  // segment, another token, a range that leaves the segment, a right that it does not grant.
  // Not for zero bytes.
  std::byte* check(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                   Rights wanted) const;

  // Whether there is such a segment and this is its token, whatever else was refused.
  bool names(TokenId id, TokenValue token) const;

  uint32_t size() const { return size_; }

 private:
  struct Entry {
    Segment segment;
    bool used;
  };

  uint32_t take_id();

  RegionArray<Entry> entries_;
  // Free TokenIDs, oldest first: an identifier rests as long as the table allows.
  RegionArray<uint32_t> freed_;
  uint32_t freed_head_ = 0;
  uint32_t freed_count_ = 0;
  uint32_t touched_ = 0;
  uint32_t size_ = 0;
};

// Whether [address, address + bytes) lies in [base, base + size), without overflow.
constexpr bool within(uint64_t base, uint64_t size, uint64_t address, uint64_t bytes) {
  return address >= base && bytes <= size && address - base <= size - bytes;
}

}  // namespace urma::memseg
