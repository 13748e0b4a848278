#pragma once

#include <cstddef>

namespace urma {

// Zeroed address space that becomes memory when touched: a page costs a fault on first use, never
// a system call or a malloc. Move only.
class Region {
 public:
  Region() = default;
  // Throws std::bad_alloc when there is no such space: as for `new`, whoever opens catches it.
  explicit Region(size_t bytes);
  // `alignment`: a power of two of pages. Empty when there is no such space.
  static Region try_make(size_t bytes, size_t alignment);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // For what is used all over: faults are few, and so are entries of the TLB. False: there are
  // none.
  bool use_huge_pages() const;

 private:
  std::byte* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// A fixed array of trivially constructible elements in a Region: all zero until written.
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
