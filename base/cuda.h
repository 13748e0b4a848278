// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace urma {

// The part of CUDA's driver interface that copies memory. Its types are those of the interface;
// results other than 0 are errors.
using CUdeviceptr = uint64_t;
using CUcontext = void*;
using CUstream = void*;

struct Cuda {
  static constexpr int most_devices = 32;
  // Attributes of a pointer, and a value of the first one.
  static constexpr int memory_type = 2;
  static constexpr int is_managed = 8;
  static constexpr int device_ordinal = 9;
  static constexpr unsigned device_memory = 2;
  static constexpr unsigned stream_non_blocking = 1;
  static constexpr unsigned host_register_portable = 1;
  static constexpr unsigned host_register_mapped = 2;
  static constexpr unsigned ipc_lazy_peer_access = 1;
  static constexpr int capture_relaxed = 2;
  // Returns whether a result says that the context cannot be used any more, so that nothing runs in
  // it.
  static constexpr bool is_fatal(int result) {
    constexpr int deinitialized = 4;
    constexpr int invalid_context = 201;
    constexpr int unknown = 999;
    return result == deinitialized || result == invalid_context || result == unknown ||
           (result >= 700 && result < 720);
  }

  // Names memory of a GPU for other processes.
  struct IpcHandle {
    std::array<std::byte, 64> bytes;
  };

  int (*cuPointerGetAttribute)(void* out, int attribute, CUdeviceptr at) = nullptr;
  int (*cuDeviceGet)(int* device, int number) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(CUcontext* context, int device) = nullptr;
  int (*cuDevicePrimaryCtxRelease)(int device) = nullptr;
  int (*cuCtxPushCurrent)(CUcontext context) = nullptr;
  int (*cuCtxPopCurrent)(CUcontext* context) = nullptr;
  int (*cuThreadExchangeStreamCaptureMode)(int* mode) = nullptr;
  int (*cuStreamCreate)(CUstream* stream, unsigned flags) = nullptr;
  int (*cuStreamDestroy)(CUstream stream) = nullptr;
  int (*cuStreamSynchronize)(CUstream stream) = nullptr;
  int (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, size_t bytes, CUstream) = nullptr;
  int (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream) = nullptr;
  int (*cuStreamQuery)(CUstream stream) = nullptr;
  int (*cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) = nullptr;
  int (*cuMemsetD32Async)(CUdeviceptr to, unsigned value, size_t count, CUstream) = nullptr;
  int (*cuMemGetAddressRange)(CUdeviceptr* base, size_t* bytes, CUdeviceptr at) = nullptr;
  int (*cuIpcGetMemHandle)(IpcHandle* handle, CUdeviceptr base) = nullptr;
  int (*cuIpcOpenMemHandle)(CUdeviceptr* base, IpcHandle handle, unsigned flags) = nullptr;
  int (*cuIpcCloseMemHandle)(CUdeviceptr base) = nullptr;
  int (*cuMemHostGetDevicePointer)(CUdeviceptr* out, void* memory, unsigned flags) = nullptr;
  int (*cuMemHostRegister)(void* memory, size_t bytes, unsigned flags) = nullptr;
  int (*cuMemHostUnregister)(void* memory) = nullptr;

  // Returns the interface if this process has loaded libcuda; else null, because a process that has
  // memory of a GPU has loaded it. Any thread may call it.
  static const Cuda* loaded();
};

// Keeps the primary context of a GPU alive.
class CudaContext {
 public:
  // Has no context.
  CudaContext() = default;
  // `number`: of the GPU, as CUDA counts them. Has no context if there is no such GPU, or if CUDA
  // cannot make one.
  explicit CudaContext(int number);
  CudaContext(CudaContext&& other) noexcept { swap(other); }
  CudaContext& operator=(CudaContext&& other) noexcept { return swap(other), *this; }
  ~CudaContext();

  // Returns the context, or null if this object has none.
  CUcontext get() const { return context_; }

 private:
  void swap(CudaContext& other) {
    std::swap(context_, other.context_);
    std::swap(device_, other.device_);
  }

  CUcontext context_ = nullptr;
  int device_ = 0;
};

// While it exists, the context is that of the calling thread, whose calls do not end a capture of
// the application (CUDA graphs).
class InCudaContext {
 public:
  explicit InCudaContext(CUcontext context)
      : cuda_(context == nullptr ? nullptr : Cuda::loaded()),
        entered_(cuda_ != nullptr && cuda_->cuCtxPushCurrent(context) == 0) {
    if (entered_) cuda_->cuThreadExchangeStreamCaptureMode(&capture_mode_);
  }
  InCudaContext(const InCudaContext&) = delete;
  ~InCudaContext() {
    if (!entered_) return;
    CUcontext left = nullptr;
    cuda_->cuThreadExchangeStreamCaptureMode(&capture_mode_);
    cuda_->cuCtxPopCurrent(&left);
  }

  // False if the context does not exist any more.
  explicit operator bool() const { return entered_; }
  const Cuda* operator->() const { return cuda_; }

 private:
  const Cuda* cuda_;
  bool entered_;
  int capture_mode_ = Cuda::capture_relaxed;
};

}  // namespace urma
