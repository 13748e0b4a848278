// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "base/assert.h"
#include "base/region.h"

namespace urma {

// Mixes all bits of a key into all bits of the result.
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

// The hash of integers by `mix_bits`.
struct MixBits {
  uint64_t operator()(uint64_t key) const { return mix_bits(key); }
};

// A map from keys to indices, with up to `capacity` entries in reserved memory, of which at most
// half are used. Linear probing with backward-shift removal: no tombstones, so a map that churns
// for years stays as fast as a new one. Keys are trivially copyable. Used by one thread at a time.
template <class Key, class Hash = MixBits>
class FlatMap {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // Returns the size of an entry. At most half of the entries are used.
  static constexpr size_t entry_bytes() { return sizeof(Entry); }

  explicit FlatMap(uint32_t capacity)
      : entries_(std::bit_ceil(uint64_t{capacity} * 2 + 2)), mask_(entries_.size() - 1) {}

  // Returns `none` if the key is absent.
  uint32_t find(const Key& key) const {
    for (uint64_t i = home(key);; i = (i + 1) & mask_) {
      if (entries_[i].stored == 0) return none;
      if (entries_[i].key == key) return entries_[i].stored - 1;
    }
  }

  // `value` must not be `none`, the key must be absent, and the map must have room: the caller owns
  // one of the map's entries, such as a slot of a slab of the same capacity.
  void insert(const Key& key, uint32_t value) {
    URMA_ASSERT(size_ <= mask_ / 2, "each caller of insert owns one of the map's entries");
    URMA_ASSERT(value != none, "`none` means that there is no entry");
    uint64_t i = home(key);
    for (; entries_[i].stored != 0; i = (i + 1) & mask_) {
      URMA_ASSERT(!(entries_[i].key == key), "a key is inserted once");
    }
    entries_[i] = {key, value + 1};
    ++size_;
  }

  bool erase(const Key& key) {
    uint64_t hole = home(key);
    for (; !(entries_[hole].key == key) || entries_[hole].stored == 0; hole = (hole + 1) & mask_) {
      if (entries_[hole].stored == 0) return false;
    }
    for (uint64_t i = (hole + 1) & mask_; entries_[i].stored != 0; i = (i + 1) & mask_) {
      // An entry may move into the hole unless its home lies cyclically after the hole.
      if (((i - home(entries_[i].key)) & mask_) >= ((i - hole) & mask_)) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole].stored = 0;
    --size_;
    return true;
  }

  uint32_t size() const { return size_; }

 private:
  struct Entry {
    Key key;
    uint32_t stored;  // value + 1; 0 if the entry is empty
  };

  uint64_t home(const Key& key) const { return Hash{}(key)&mask_; }

  RegionArray<Entry> entries_;
  uint64_t mask_;
  uint32_t size_ = 0;
};

}  // namespace urma
