// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/region.h"
#include "urma/core/handle.h"

namespace urma {

// Up to `capacity` objects of one type in address space that is reserved at construction. Slots are
// reused last in, first out, so that a busy engine stays in few cache lines. Used by one thread at
// a time.
template <class T>
class Slab {
 public:
  explicit Slab(uint32_t capacity)
      : slots_(capacity), generations_(capacity), capacity_(capacity) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    for (uint32_t i = 0; i < touched_; ++i) {
      if (live(i)) object(i)->~T();
    }
  }

  // Returns null if `capacity` objects are alive.
  template <class... Args>
  T* create(Args&&... args) {
    uint32_t index = free_;
    if (index != none) {
      free_ = slots_[index].next_free;
    } else if (touched_ < capacity_) {
      index = touched_++;
    } else {
      return nullptr;
    }
    // Generations of living objects are odd, so that a zeroed handle never finds an object.
    ++generations_[index];
    ++size_;
    return new (&slots_[index]) T(std::forward<Args>(args)...);
  }

  void destroy(T* object) {
    const uint32_t index = index_of(object);
    URMA_ASSERT(live(index), "an object is destroyed once");
    object->~T();
    ++generations_[index];
    slots_[index].next_free = free_;
    free_ = index;
    --size_;
  }

  // Returns the index that the next object will have. Must not be called if `capacity` objects are
  // alive.
  uint32_t next_index() const { return free_ != none ? free_ : touched_; }

  // Returns null if the object has been destroyed.
  T* find(Handle handle) {
    if (handle.index >= touched_ || generations_[handle.index] != handle.generation) return nullptr;
    return live(handle.index) ? object(handle.index) : nullptr;
  }
  Handle handle_of(const T* object) const {
    const uint32_t index = index_of(object);
    return {index, generations_[index]};
  }
  uint32_t index_of(const T* object) const {
    return static_cast<uint32_t>(reinterpret_cast<const Slot*>(object) - &slots_[0]);
  }
  // Returns the object in a slot that the caller knows to be in use.
  T& at(uint32_t index) { return *object(index); }
  const T& at(uint32_t index) const { return *object(index); }
  bool live(uint32_t index) const { return index < touched_ && generations_[index] % 2 == 1; }

  uint32_t size() const { return size_; }
  uint32_t capacity() const { return capacity_; }
  bool full() const { return size_ == capacity_; }

  template <class Function>
  void for_each(Function&& function) {
    for_each_below(touched_, function);
  }
  // The same for the objects whose index is below `end`, of which there may be fewer.
  template <class Function>
  void for_each_below(uint32_t end, Function&& function) {
    for (uint32_t i = 0; i < touched_ && i < end; ++i) {
      if (live(i)) function(*object(i));
    }
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  union Slot {
    Slot() {}
    ~Slot() {}
    uint32_t next_free;
    alignas(T) std::byte bytes[sizeof(T)];
  };

  T* object(uint32_t index) { return std::launder(reinterpret_cast<T*>(slots_[index].bytes)); }
  const T* object(uint32_t index) const {
    return std::launder(reinterpret_cast<const T*>(slots_[index].bytes));
  }

  RegionArray<Slot> slots_;
  RegionArray<uint32_t> generations_;
  uint32_t capacity_;
  uint32_t touched_ = 0;
  uint32_t size_ = 0;
  uint32_t free_ = none;
};

}  // namespace urma
