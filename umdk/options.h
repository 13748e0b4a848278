// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "umdk/calls.h"

namespace urma::umdk {

// One option of urma_set_..._opt and urma_get_..._opt: a field of the object's public struct.
struct OptionField {
  uint64_t option;
  size_t offset;
  uint32_t bytes;
  uint64_t mask = 0;  // the bit that says that it was set, for fields that a device fills
};

inline const OptionField* field_of(std::span<const OptionField> table, uint64_t option) {
  for (const OptionField& field : table) {
    if (field.option == option) return &field;
  }
  return nullptr;
}

// Copies the option between `buffer` and the object, and returns whether that succeeded. `mask` may
// be null.
inline urma_status_t set_option(const char* call, void* object, std::span<const OptionField> table,
                                uint64_t option, const void* buffer, uint32_t bytes,
                                uint64_t* mask) {
  const OptionField* const field = field_of(table, option);
  if (buffer == nullptr || field == nullptr || bytes != field->bytes) {
    return refuse(URMA_EINVAL, call,
                  "the option 0x%llx with %u bytes does not exist. Fix: use those of "
                  "urma_opcode.h, with the size of the field",
                  static_cast<unsigned long long>(option), bytes);
  }
  std::memcpy(static_cast<std::byte*>(object) + field->offset, buffer, bytes);
  if (mask != nullptr) *mask |= field->mask;
  return URMA_SUCCESS;
}

inline urma_status_t get_option(const char* call, const void* object,
                                std::span<const OptionField> table, uint64_t option, void* buffer,
                                uint32_t bytes) {
  const OptionField* const field = field_of(table, option);
  if (buffer == nullptr || field == nullptr || bytes < field->bytes) {
    return refuse(URMA_EINVAL, call,
                  "the option 0x%llx does not fit into %u bytes, or does not exist. Fix: use those "
                  "of urma_opcode.h, with the size of the field",
                  static_cast<unsigned long long>(option), bytes);
  }
  std::memcpy(buffer, static_cast<const std::byte*>(object) + field->offset, field->bytes);
  return URMA_SUCCESS;
}

}  // namespace urma::umdk
