// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "umdk/handle.h"

namespace urma::umdk {

// Memory for the objects of one type. It is never returned to the system: a program that uses a
// pointer to a deleted object reads zeros, which no call accepts. Memory that was freed first is
// used again first, and not before `rests` further objects were freed; a pointer that is older
// than that may mean another object. Any thread calls it.
template <class Object>
class Pool {
 public:
  static constexpr size_t rests = 256;

  // Throws std::bad_alloc, and what the constructor throws.
  template <class... Arguments>
  static Object* make(Arguments&&... arguments) {
    void* const memory = take();
    try {
      auto* const object = new (memory) Object(std::forward<Arguments>(arguments)...);
      handle_of(*object).store(mark_of(object), std::memory_order_relaxed);
      return object;
    } catch (...) {
      std::memset(memory, 0, sizeof(Object));
      give_back(memory);
      throw;
    }
  }
  struct Destroy {
    void operator()(Object* object) const { destroy(object); }
  };
  using Owner = std::unique_ptr<Object, Destroy>;

  static void destroy(Object* object) {
    auto* const memory = reinterpret_cast<std::byte*>(object);
    auto* const handle = reinterpret_cast<std::byte*>(&object->handle);
    handle_of(*object).store(0);
    object->~Object();
    // A thread that is about to claim the object reads the handle.
    std::memset(memory, 0, static_cast<size_t>(handle - memory));
    std::atomic_ref(*reinterpret_cast<uint64_t*>(handle)).store(0, std::memory_order_relaxed);
    std::byte* const rest = handle + sizeof(uint64_t);
    std::memset(rest, 0, static_cast<size_t>(memory + sizeof(Object) - rest));
    give_back(memory);
  }

 private:
  static void* take() {
    const std::lock_guard held(mutex());
    if (free().size() > rests) {
      void* const memory = free().front();
      free().pop_front();
      return memory;
    }
    return ::operator new (sizeof(Object), std::align_val_t{alignof(Object)});
  }
  static void give_back(void* memory) {
    const std::lock_guard held(mutex());
    free().push_back(memory);
  }
  // These outlive every object, also those that a program deletes while it exits.
  static std::mutex& mutex() {
    static auto* const only = free_in_children();
    return *only;
  }
  // Makes a mutex that no thread holds while a process forks: a child would wait for it forever.
  static std::mutex* free_in_children() {
    auto made = std::make_unique<std::mutex>();
    const int failed =
        pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); }, [] { mutex().unlock(); });
    if (failed != 0) throw std::bad_alloc();
    return made.release();
  }
  static std::deque<void*>& free() {
    static auto* const only = new std::deque<void*>;
    return *only;
  }
};

}  // namespace urma::umdk
