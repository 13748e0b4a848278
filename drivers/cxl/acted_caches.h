// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/prng.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/layout.h"

namespace urma::drivers::cxl {

// A test double of the caches of a window that is not coherent, since developers do not have such
// hardware. Its owner works on a copy of its own; lines move between the copy and memory when they
// are written back and refreshed, and sometimes without a reason, as in real caches. Used by one
// thread at a time.
class ActedCaches final : public Caches {
 public:
  // Returns null if the system has no memory for the copy.
  static std::unique_ptr<ActedCaches> make(std::byte* memory, size_t bytes, uint64_t seed);
  ~ActedCaches() override;

  std::byte* copy() const { return copy_; }

  void write_back(const void* at, size_t bytes) override;
  void refresh(const void* at, size_t bytes) override;

 private:
  ActedCaches(std::byte* memory, std::byte* copies, size_t bytes, uint64_t seed);

  template <class Function>
  void for_lines(const void* at, size_t bytes, Function&& each);
  void write_back(size_t line);
  void load(size_t line);
  void evict(size_t line);
  void evict_some();

  std::byte* const memory_;
  std::byte* const copy_;
  std::byte* const loaded_;  // what was in memory when a line was loaded: the others are dirty
  const size_t bytes_;
  Prng prng_;
  std::array<size_t, 256> latest_{};  // lines that were asked for
  size_t next_ = 0;
};

}  // namespace urma::drivers::cxl
