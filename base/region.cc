// SPDX-License-Identifier: Apache-2.0
#include "base/region.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

namespace urma {

Region Region::try_make(size_t bytes, size_t alignment) {
  Region region;
  const size_t slack = alignment > page_bytes ? alignment : 0;
  if (bytes == 0 || bytes > SIZE_MAX / 2 - slack) return region;
  void* at = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return region;
  region.mapped_ = static_cast<std::byte*>(at);
  region.mapped_bytes_ = bytes + slack;
  const auto address = reinterpret_cast<uintptr_t>(at);
  const size_t skip = slack == 0 ? 0 : (slack - address % slack) % slack;
  region.data_ = region.mapped_ + skip;
  region.bytes_ = bytes;
  return region;
}

// Regions begin at different lines of their pages. Otherwise the first elements of an engine's many
// arrays, which are its busiest, would all map to the same set of the first-level cache.
Region::Region(size_t bytes) {
  if (bytes == 0) return;
  constexpr size_t line_bytes = 64;
  constexpr size_t colours = page_bytes / line_bytes;
  static std::atomic<size_t> made{0};
  const size_t skip = made.fetch_add(11, std::memory_order_relaxed) % colours * line_bytes;
  *this = try_make(bytes + skip, page_bytes);
  if (data_ == nullptr) throw std::bad_alloc();
  data_ += skip;
  bytes_ = bytes;
}

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool Region::use_huge_pages() const {
  return mapped_ != nullptr && madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE) == 0;
}

Region::~Region() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

}  // namespace urma
