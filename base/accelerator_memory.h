// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace urma {

// The memory of accelerators (GPUs) that this process has registered. Processors cannot access it;
// only the accelerator's driver copies it (AcceleratorCopies). The process has one table, because
// its accelerators have one address space, in which no block of 2 MiB contains both their memory
// and that of the process. Any thread may call these functions.
class AcceleratorMemory {
 public:
  // Returns the number of the accelerator that this memory belongs to; -1 if only a part of it
  // does, or it belongs to several; or nothing if processors can access it. Only its first and last
  // byte are looked at. Takes microseconds. Accelerators are known only if the process has loaded
  // their driver.
  static std::optional<int> owner(std::span<const std::byte> memory);

  // From `add` to `remove`, `has` returns true for each byte of this memory of accelerator
  // `number`. The same memory may be added several times. Returns false if the address space is
  // exhausted.
  static bool add(std::span<const std::byte> memory, int number);
  static void remove(std::span<const std::byte> memory);

  static bool has(const void* at) { return find(at) != 0; }
  // Returns the number of the accelerator that a byte of added memory belongs to.
  static int number_of(const void* at) { return static_cast<int>(find(at) >> number_shift) - 1; }

 private:
  static constexpr unsigned block_bits = 21;
  static constexpr size_t blocks = size_t{1} << (48 - block_bits);
  static constexpr unsigned number_shift = 24;  // below: how often the block was added

  using Block = std::atomic<uint32_t>;

  static uint32_t find(const void* at) {
    const Block* const table = table_.load(std::memory_order_acquire);
    if (table == nullptr) [[likely]]
      return 0;
    const uint64_t block = reinterpret_cast<uintptr_t>(at) >> block_bits;
    return block < blocks ? table[block].load(std::memory_order_relaxed) : 0;
  }
  static Block* table();

  static inline std::atomic<Block*> table_ = nullptr;
};

}  // namespace urma
