// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace urma::apps::perf {

// Memory of a GPU, which this process can only copy. CUDA's driver is loaded for it.
class GpuMemory {
 public:
  // Throws a Failure if there is no such GPU or it has too little memory.
  GpuMemory(uint32_t number, size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  std::span<std::byte> span() const { return memory_; }
  void put(size_t offset, std::span<const std::byte> from);
  void get(size_t offset, std::span<std::byte> to) const;

 private:
  struct Driver;

  void must(int result, const char* what) const;

  std::unique_ptr<const Driver> driver_;
  uint32_t number_;
  std::span<std::byte> memory_;
};

}  // namespace urma::apps::perf
