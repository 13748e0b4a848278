// SPDX-License-Identifier: Apache-2.0
#include "base/accelerator_memory.h"

#include <memory>
#include <mutex>
#include <new>

#include "base/cuda.h"
#include "base/region.h"

namespace urma {
namespace {

std::optional<int> owner_of_byte(const Cuda& cuda, const std::byte* at) {
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  unsigned type = 0;
  unsigned managed = 0;
  int number = 0;
  const bool known = cuda.cuPointerGetAttribute(&type, Cuda::memory_type, address) == 0 &&
                     cuda.cuPointerGetAttribute(&managed, Cuda::is_managed, address) == 0 &&
                     cuda.cuPointerGetAttribute(&number, Cuda::device_ordinal, address) == 0;
  const bool only_there = known && type == Cuda::device_memory && managed == 0;
  return only_there && number >= 0 && number < Cuda::most_devices ? std::optional(number)
                                                                  : std::nullopt;
}

}  // namespace

std::optional<int> AcceleratorMemory::owner(std::span<const std::byte> memory) {
  const Cuda* const cuda = Cuda::loaded();
  if (cuda == nullptr || memory.empty()) return std::nullopt;
  const std::optional<int> first = owner_of_byte(*cuda, memory.data());
  const std::optional<int> last = owner_of_byte(*cuda, memory.data() + (memory.size() - 1));
  return first == last ? first : std::optional(-1);
}

// The table is never freed: another thread may be reading it when the process ends.
AcceleratorMemory::Block* AcceleratorMemory::table() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Block* made = table_.load(std::memory_order_relaxed);
  if (made != nullptr) return made;
  static Region* const region =
      new (std::nothrow) Region(Region::try_make(blocks * sizeof(Block), page_bytes));
  if (region == nullptr || region->data() == nullptr) return nullptr;
  made = reinterpret_cast<Block*>(region->data());
  table_.store(made, std::memory_order_release);
  return made;
}

bool AcceleratorMemory::add(std::span<const std::byte> memory, int number) {
  Block* const all = table();
  if (all == nullptr) return false;
  const uint64_t first = reinterpret_cast<uintptr_t>(memory.data()) >> block_bits;
  const uint64_t last =
      (reinterpret_cast<uintptr_t>(memory.data()) + memory.size() - 1) >> block_bits;
  if (last >= blocks) return false;
  const uint32_t owner = static_cast<uint32_t>(number + 1) << number_shift;
  for (uint64_t i = first; i <= last; ++i) {
    uint32_t before = all[i].load(std::memory_order_relaxed);
    while (!all[i].compare_exchange_weak(before, before == 0 ? owner + 1 : before + 1)) {
    }
  }
  return true;
}

void AcceleratorMemory::remove(std::span<const std::byte> memory) {
  Block* const all = table_.load(std::memory_order_acquire);
  const uint64_t first = reinterpret_cast<uintptr_t>(memory.data()) >> block_bits;
  const uint64_t last =
      (reinterpret_cast<uintptr_t>(memory.data()) + memory.size() - 1) >> block_bits;
  constexpr uint32_t count = (1u << number_shift) - 1;
  for (uint64_t i = first; i <= last; ++i) {
    uint32_t before = all[i].load(std::memory_order_relaxed);
    while (!all[i].compare_exchange_weak(before, (before & count) == 1 ? 0 : before - 1)) {
    }
  }
}

}  // namespace urma
