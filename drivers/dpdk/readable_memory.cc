// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/readable_memory.h"

#include <algorithm>

#include "base/region.h"

namespace urma::drivers::dpdk {
namespace {

std::span<const std::byte> pages_of(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const size_t in_front = begin % page_bytes;
  const size_t bytes = (in_front + memory.size() + page_bytes - 1) / page_bytes * page_bytes;
  return {memory.data() - in_front, bytes};
}

}  // namespace

ReadableMemory::ReadableMemory(Device& device) : device_(device) { granted_.reserve(most_granted); }

ReadableMemory::~ReadableMemory() {
  // A forked child shares the mappings with its parent, whose device goes on reading.
  if (getpid() != maker_) return;
  for (const Range& range : mapped_) device_.unmap_pages(range.bytes());
}

bool ReadableMemory::map(std::span<const std::byte> memory, Rights) {
  const Range pages = range_of(pages_of(memory));
  const std::lock_guard lock(mutex_);
  for (Range& mapped : mapped_) {
    if (!mapped.contains(pages)) continue;
    ++mapped.users;
    return true;
  }
  // The device refuses pages of which it has mapped a part.
  if (!device_.map_pages(pages.bytes())) return false;
  mapped_.push_back(pages);
  return true;
}

void ReadableMemory::unmap(std::span<const std::byte> memory, Rights) {
  const Range pages = range_of(pages_of(memory));
  const std::lock_guard lock(mutex_);
  const auto at =
      std::ranges::find_if(mapped_, [&](const Range& range) { return range.contains(pages); });
  if (at == mapped_.end() || --at->users > 0) return;
  device_.unmap_pages(at->bytes());
  mapped_.erase(at);
}

void ReadableMemory::grant(std::span<const std::byte> memory, Rights) {
  if (granted_.size() < most_granted) granted_.push_back(range_of(memory));
}

void ReadableMemory::revoke(std::span<const std::byte> memory, Rights) {
  const Range range = range_of(memory);
  const auto at = std::ranges::find_if(granted_, [&](const Range& granted) {
    return granted.begin == range.begin && granted.end == range.end;
  });
  if (at != granted_.end()) granted_.erase(at);
}

bool ReadableMemory::has(const std::byte* data, size_t bytes) const {
  const Range range{data, data + bytes};
  return std::ranges::any_of(granted_, [&](const Range& one) { return one.contains(range); });
}

}  // namespace urma::drivers::dpdk
