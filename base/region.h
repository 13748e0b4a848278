// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace urma {

// The unit in which memory is mapped and protected, on each machine that this library runs on.
inline constexpr size_t page_bytes = 4096;

// Zeroed address space that takes memory when it is touched: the first use of a page costs a fault,
// but no system call or malloc. Move only.
class Region {
 public:
  Region() = default;
  // Throws std::bad_alloc if the address space is exhausted, as `new` does.
  explicit Region(size_t bytes);
  // `alignment` is a power of two, at least a page. Returns an empty region if the address space is
  // exhausted.
  static Region try_make(size_t bytes, size_t alignment);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Asks for huge pages, for regions of which all parts are used: they then need fewer page faults
  // and TLB entries. Returns false if the system has no huge pages.
  bool use_huge_pages() const;

 private:
  std::byte* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// An array of fixed size in a Region, of trivially constructible elements: all zero until written.
template <class T>
class RegionArray {
 public:
  RegionArray() = default;
  explicit RegionArray(size_t count) : region_(count * sizeof(T)), count_(count) {}

  T& operator[](size_t i) { return reinterpret_cast<T*>(region_.data())[i]; }
  const T& operator[](size_t i) const { return reinterpret_cast<const T*>(region_.data())[i]; }
  T* data() { return reinterpret_cast<T*>(region_.data()); }
  size_t size() const { return count_; }

 private:
  Region region_;
  size_t count_ = 0;
};

}  // namespace urma
