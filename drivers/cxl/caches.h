#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace urma::drivers::cxl {

// What stands between a processor and the memory of a window that nobody keeps coherent. A line has
// one writer at a time (layout.h), so what one writes back never lies over what another one wrote.
class Caches {
 public:
  virtual ~Caches() = default;
  // What was stored in the lines of these bytes is in memory, before what is stored from now on.
  virtual void write_back(const void* at, size_t bytes) = 0;
  // What is loaded from them from now on comes from memory.
  virtual void refresh(const void* at, size_t bytes) = 0;
};

// This processor's instructions. Null: it has none for that, or we know none.
std::unique_ptr<Caches> processor_caches();

}  // namespace urma::drivers::cxl
