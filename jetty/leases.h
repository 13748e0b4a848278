// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/lazy_block.h"

namespace urma::jetty {

// Permits 0 to count-1 that circulate: vacant -> posted (application) -> engine -> JFC -> vacant
// (when the completion is polled). A work that ends in `post` takes a vacant one to the JFC. There
// are two rings, each with room for all permits, so neither can overflow. Behind them lie the
// owner's arrays (`behind`). All is one LazyBlock: all zeros, without memory until it is touched.
// Writers: posted ring - the posting thread; vacant ring - the polling thread.
class Leases : private LazyBlock {
 public:
  static constexpr uint16_t none = UINT16_MAX;

  // The block has `behind` bytes for the owner. Throws std::bad_alloc.
  explicit Leases(uint16_t count, size_t behind = 0);

  uint16_t count() const { return count_; }
  // Returns false if no permit was ever posted. A thread that has been notified of a post sees
  // true.
  bool used() const { return touched(); }

  // ---- posting thread
  uint32_t vacant() const {
    const Lines& at = lines();
    return at.returned.load(std::memory_order_acquire) + count_ - at.taken_vacant;
  }
  // Returns the permit that `take_vacant` takes next. One is vacant.
  uint16_t next_vacant() const {
    const uint32_t at = lines().taken_vacant & mask_;
    return static_cast<uint16_t>(vacant_ring()[at] ^ at);
  }
  uint16_t take_vacant() {
    const uint16_t lease = next_vacant();
    ++lines().taken_vacant;
    return lease;
  }
  // Appends a filled permit; the engine sees it after `publish`.
  void stage(uint16_t lease) { posted_ring()[lines().staged++ & mask_] = lease; }
  void publish() {
    touch();
    lines().posted.store(lines().staged, std::memory_order_release);
  }

  // ---- engine
  uint32_t waiting() const {
    return lines().posted.load(std::memory_order_acquire) - lines().taken_posted;
  }
  // Positions count the permits in post order, modulo 2^32. A permit is found by its position until
  // it is given back.
  uint32_t next_position() const { return lines().taken_posted; }
  uint16_t posted(uint32_t position) const { return posted_ring()[position & mask_]; }
  uint16_t take_posted() { return posted_ring()[lines().taken_posted++ & mask_]; }
  uint16_t next_posted(uint32_t ahead = 0) const {
    return posted_ring()[(lines().taken_posted + ahead) & mask_];
  }

  // ---- polling thread
  void give_back(uint16_t lease) {
    Lines& own = lines();
    const uint32_t returned = own.returned.load(std::memory_order_relaxed);
    const uint32_t at = (count_ + returned) & mask_;
    vacant_ring()[at] = static_cast<uint16_t>(lease ^ at);
    own.returned.store(returned + 1, std::memory_order_release);
  }

 protected:
  // ---- for the owner
  using LazyBlock::touch;
  static constexpr size_t spare_bytes = 48;
  // Returns memory on the engine's cache line.
  std::byte* spare() const { return lines().spare; }
  // Returns a counter on the polling thread's cache line.
  std::atomic<uint32_t>& counter() const { return lines().counter; }
  // Returns memory for at least two numbers for each permit.
  uint16_t* owners_ring() const { return ring(2); }
  std::byte* behind() const { return reinterpret_cast<std::byte*>(ring(rings)); }

 private:
  struct Lines {
    alignas(64) uint32_t taken_vacant;  // posting thread
    uint32_t staged;
    std::atomic<uint32_t> posted;
    alignas(64) std::atomic<uint32_t> returned;  // polling thread
    std::atomic<uint32_t> counter;
    alignas(64) uint32_t taken_posted;  // engine
    alignas(8) std::byte spare[spare_bytes];
  };
  static constexpr size_t rings = 4;  // of 16 bits a permit; the last two are the owner's

  Lines& lines() const { return *reinterpret_cast<Lines*>(data()); }
  uint16_t* ring(size_t which) const {
    return reinterpret_cast<uint16_t*>(data() + sizeof(Lines)) + which * (mask_ + size_t{1});
  }
  // Holds each permit xor its index, so that a ring of zeros holds all permits in order.
  uint16_t* vacant_ring() const { return ring(0); }
  uint16_t* posted_ring() const { return ring(1); }

  const uint16_t mask_;
  const uint16_t count_;
};

}  // namespace urma::jetty
