// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "tests/accelerator/fake_cuda.h"

namespace urma::test {

// Memory of one of the GPUs, zeroed. The context of that GPU becomes that of the calling thread. A
// call of the driver that fails ends the process.
class GpuBytes {
 public:
  explicit GpuBytes(size_t bytes, int wanted = 0) : bytes_(bytes) {
    int gpus = 0;
    void* context = nullptr;
    must(cuInit(0));
    must(cuDeviceGetCount(&gpus));
    gpu_ = wanted % gpus;
    must(cuDevicePrimaryCtxRetain(&context, gpu_));
    must(cuCtxSetCurrent(context));
    must(cuMemAlloc_v2(&at_, bytes));
    fill(std::byte{0});
  }
  ~GpuBytes() {
    release();
    cuDevicePrimaryCtxRelease_v2(gpu_);
  }
  GpuBytes(const GpuBytes&) = delete;

  void release() {
    if (!std::exchange(freed_, true)) cuMemFree_v2(at_);
  }
  int number() const { return gpu_; }
  std::span<std::byte> span() const { return {reinterpret_cast<std::byte*>(at_), bytes_}; }
  void set(std::span<const std::byte> data, size_t offset = 0) {
    must(cuMemcpyHtoD_v2(at_ + offset, data.data(), data.size()));
  }
  void fill(std::byte value) { set(std::vector<std::byte>(bytes_, value)); }
  std::vector<std::byte> get(size_t offset, size_t bytes) const {
    std::vector<std::byte> out(bytes);
    must(cuMemcpyDtoH_v2(out.data(), at_ + offset, bytes));
    return out;
  }

 private:
  static void must(int result) {
    if (result != 0) std::abort();
  }

  size_t bytes_;
  int gpu_ = 0;
  uint64_t at_ = 0;
  bool freed_ = false;
};

}  // namespace urma::test
