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
  // Stores to the lines of these bytes are in memory before any later store.
  virtual void write_back(const void* at, size_t bytes) = 0;
  // Later loads from the lines of these bytes come from memory.
  virtual void refresh(const void* at, size_t bytes) = 0;
};

// Uses this processor's instructions. Returns null if it has none for that, or none are known.
std::unique_ptr<Caches> processor_caches();

}  // namespace urma::drivers::cxl
