// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of tensors by DLPack (dmlc.github.io/dlpack), which libraries of tensors offer instead of
// the buffer protocol. Everything here is called with the GIL.

#include <pybind11/pybind11.h>

#include <cstddef>
#include <span>
#include <utility>

namespace urma::python {

struct ManagedTensor;

// The memory of a tensor, without a copy. While this exists, the tensor's memory stays. Move only.
class Tensor {
 public:
  // Returns whether the object offers its memory by DLPack.
  static bool is_one(pybind11::handle object);

  Tensor() = default;
  // Raises BufferError if processors cannot read that memory, or it is not contiguous.
  Tensor(pybind11::handle object, const char* name);
  Tensor(Tensor&& other) noexcept
      : held_(std::exchange(other.held_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Tensor() { release(); }

  void release();
  explicit operator bool() const { return held_ != nullptr; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  ManagedTensor* held_ = nullptr;
  std::span<std::byte> bytes_;
};

// The methods __dlpack__ and __dlpack_device__ of an object with the buffer protocol: its bytes as
// a tensor of uint8, which holds a view of the object.
pybind11::capsule to_dlpack(const pybind11::object& self, const pybind11::object& stream,
                            const pybind11::object& max_version, const pybind11::object& dl_device,
                            const pybind11::object& copy);
pybind11::tuple dlpack_device(const pybind11::object& self);

}  // namespace urma::python
