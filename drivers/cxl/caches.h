// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace urma::drivers::cxl {

// The caches between a processor and the memory of a window that hardware does not keep coherent. A
// line has one writer at a time (layout.h), so no write-back overwrites another writer's bytes.
class Caches {
 public:
  virtual ~Caches() = default;
  // Writes the lines of these bytes back: stores to them are in memory before any later store.
  virtual void write_back(const void* at, size_t bytes) = 0;
  // Refreshes the lines of these bytes: later loads from them come from memory.
  virtual void refresh(const void* at, size_t bytes) = 0;
};

// Returns caches that use this processor's instructions, or null if no instructions for this are
// known.
std::unique_ptr<Caches> processor_caches();

}  // namespace urma::drivers::cxl
