// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma::umdk {

// Each object of the C API has a field `handle`, which contains a mark while the object exists. The
// mark depends on the object's address and type, so that neither a struct which the program made
// itself, nor a copy, nor a deleted object has it.
template <class Object>
uint64_t mark_of(const Object* object) {
  return reinterpret_cast<uintptr_t>(object) ^ Object::kind;
}

// Returns the object that a pointer of the C API means, or null if there is none.
template <class Object, class Public>
Object* find(Public* given) {
  auto* const object = static_cast<Object*>(given);
  return object != nullptr && object->handle == mark_of(object) ? object : nullptr;
}

}  // namespace urma::umdk
