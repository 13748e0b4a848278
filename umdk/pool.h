// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstring>
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
  // The memory of an object. The list of free ones needs none besides: objects end also where the
  // system has none left.
  struct Room {
    alignas(Object) std::byte object[sizeof(Object)];
    Room* next = nullptr;  // of a free one: the next that was freed
  };
  struct Free {
    std::mutex mutex;
    Room* first = nullptr;
    Room* last = nullptr;
    size_t count = 0;
  };

  static void* take() {
    Free& free = free_rooms();
    const std::lock_guard held(free.mutex);
    if (free.count <= rests) return new Room;
    --free.count;
    return std::exchange(free.first, free.first->next)->object;
  }
  static void give_back(void* memory) {
    auto* const room = static_cast<Room*>(memory);
    room->next = nullptr;
    Free& free = free_rooms();
    const std::lock_guard held(free.mutex);
    (free.count++ == 0 ? free.first : free.last->next) = room;
    free.last = room;
  }
  // They outlive every object, also those that a program deletes while it exits.
  static Free& free_rooms() {
    static auto* const only = usable_in_children();
    return *only;
  }
  // No thread holds the mutex while a process forks: a child would wait for it forever.
  static Free* usable_in_children() {
    auto made = std::make_unique<Free>();
    const int failed =
        pthread_atfork([] { free_rooms().mutex.lock(); }, [] { free_rooms().mutex.unlock(); },
                       [] { free_rooms().mutex.unlock(); });
    if (failed != 0) throw std::bad_alloc();
    return made.release();
  }
};

}  // namespace urma::umdk
