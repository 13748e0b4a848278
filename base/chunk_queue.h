// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/slab.h"

namespace urma {

// FIFO queues that share one pool of chunks. An empty queue holds no chunk, so a million idle
// queues take 8 bytes each. An element keeps its address until it is popped. Used by one thread at
// a time.
template <class T, uint32_t PerChunk = 32>
class ChunkQueue {
 public:
  // Its elements are not initialised, so taking a chunk touches no memory: each is written before
  // it is read.
  struct Chunk {
    Chunk() {}
    T& at(uint32_t i) { return *std::launder(reinterpret_cast<T*>(bytes + i * sizeof(T))); }

    alignas(T) std::byte bytes[PerChunk * sizeof(T)];
    uint32_t next;
  };
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr uint32_t elements_per_chunk = PerChunk;
  using Pool = Slab<Chunk>;

  // Iterates from front to back. Valid until an element is popped.
  class Cursor {
   public:
    explicit operator bool() const { return left_ > 0; }
    T& operator*() const { return pool_->at(chunk_).at(offset_); }
    T* operator->() const { return &**this; }
    void operator++() {
      if (--left_ > 0 && ++offset_ == PerChunk) {
        chunk_ = pool_->at(chunk_).next;
        offset_ = 0;
      }
    }

   private:
    friend class ChunkQueue;
    Cursor(Pool* pool, uint32_t chunk, uint32_t offset, uint32_t left)
        : pool_(pool), chunk_(chunk), offset_(offset), left_(left) {}
    Pool* pool_;
    uint32_t chunk_;
    uint32_t offset_;
    uint32_t left_;
  };

  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  T& front(Pool& pool) const { return pool.at(head(pool)).at(head_offset_); }
  T& back(Pool& pool) { return pool.at(tail_).at((head_offset_ + size_ - 1) % PerChunk); }
  Cursor begin(Pool& pool) {
    return Cursor(&pool, empty() ? tail_ : head(pool), head_offset_, size_);
  }

  // Returns false, and queues nothing, if the pool has no chunk left, or the queue already has 16
  // million elements.
  bool push(Pool& pool, const T& element) {
    const uint32_t at = (head_offset_ + size_) % PerChunk;
    if (size_ == 0 || at == 0) {
      if (!grow(pool)) return false;
    }
    new (&pool.at(tail_).at(size_ == 0 ? 0 : at)) T(element);
    ++size_;
    return true;
  }

  void pop(Pool& pool) {
    URMA_ASSERT(size_ > 0, "a queue is popped only when it holds something");
    ++head_offset_;
    --size_;
    if (head_offset_ < PerChunk && size_ > 0) return;
    const uint32_t old = head(pool);
    pool.at(tail_).next = pool.at(old).next;
    head_offset_ = 0;
    pool.destroy(&pool.at(old));
  }

  void clear(Pool& pool) {
    while (!empty()) pop(pool);
  }

 private:
  bool grow(Pool& pool) {
    // A chunk is added only if the queue may fill it.
    if (size_ > most_elements - PerChunk) return false;
    Chunk* chunk = pool.create();
    if (chunk == nullptr) return false;
    const uint32_t index = pool.index_of(chunk);
    if (size_ == 0) {
      chunk->next = index;
      head_offset_ = 0;
    } else {
      chunk->next = head(pool);
      pool.at(tail_).next = index;
    }
    tail_ = index;
    return true;
  }

  // Returns the first chunk of a queue that is not empty. Chunks form a ring, so an idle channel,
  // which has several queues, keeps no number for it. For the same reason the two values below
  // share a word.
  uint32_t head(Pool& pool) const { return pool.at(tail_).next; }

  static constexpr unsigned size_bits = 24;
  static constexpr uint32_t most_elements = (1u << size_bits) - 1;
  static_assert(PerChunk < 1u << (32 - size_bits));

  uint32_t tail_ = UINT32_MAX;
  uint32_t size_ : size_bits = 0;
  uint32_t head_offset_ : 32 - size_bits = 0;
};

}  // namespace urma
