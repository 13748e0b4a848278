// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace urma::umdk {

// How many calls of fork() led to this process.
inline std::atomic<uint32_t> forks{0};

// Each object of the C API has a field `handle`, which contains a mark while the object exists. The
// mark depends on the object's address and type, so that neither a struct which the program made
// itself, nor a copy, nor a deleted object has it.
template <class Object>
uint64_t mark_of(const Object* object) {
  return reinterpret_cast<uintptr_t>(object) ^ Object::kind;
}

// Returns the mark of an object that a thread of this process has claimed (Claim). A child of
// fork() does not find such an object, as it does not have that thread.
template <class Object>
uint64_t claimed_mark_of(const Object* object) {
  const uint64_t process = forks.load(std::memory_order_relaxed);
  return ~mark_of(object) ^ process << 32;
}

template <class Object>
std::atomic_ref<uint64_t> handle_of(Object& object) {
  return std::atomic_ref<uint64_t>(object.handle);
}

// Returns the object that a pointer of the C API means, or null if there is none.
template <class Object, class Public>
Object* find(Public* given) {
  auto* const object = static_cast<Object*>(given);
  if (object == nullptr) return nullptr;
  const uint64_t handle = handle_of(*object).load(std::memory_order_relaxed);
  if (handle == mark_of(object)) [[likely]]
    return object;
  return handle == claimed_mark_of(object) ? object : nullptr;
}

// One thread at a time claims an object, to end it or to change its state. Calls that only use an
// object do not claim it, and find it meanwhile: it may turn out that it cannot end yet.
template <class Object>
class Claim {
 public:
  // Waits while another thread has claimed the object. Has no object if that does not exist, or if
  // the other thread has ended it.
  template <class Public>
  explicit Claim(Public* given) : object_(static_cast<Object*>(given)) {
    while (object_ != nullptr && !take()) {
      if (find<Object>(object_) == nullptr) {
        object_ = nullptr;
      } else {
        sched_yield();
      }
    }
  }
  ~Claim() {
    if (object_ == nullptr) return;
    uint64_t claimed = claimed_mark_of(object_);  // not so if the object was ended
    handle_of(*object_).compare_exchange_strong(claimed, mark_of(object_));
  }
  Claim(const Claim&) = delete;

  Object* object() const { return object_; }
  // The object has ended.
  void drop() { object_ = nullptr; }

 private:
  // Does not write to a struct that the program made itself.
  bool take() {
    uint64_t handle = handle_of(*object_).load(std::memory_order_relaxed);
    return handle == mark_of(object_) &&
           handle_of(*object_).compare_exchange_strong(handle, claimed_mark_of(object_));
  }

  Object* object_;
};

}  // namespace urma::umdk
