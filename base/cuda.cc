// SPDX-License-Identifier: Apache-2.0
#include "base/cuda.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <optional>

namespace urma {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<Cuda> find_all(void* library) {
  Cuda cuda;
  const bool all =
      find(library, "cuPointerGetAttribute", cuda.cuPointerGetAttribute) &&
      find(library, "cuDeviceGet", cuda.cuDeviceGet) &&
      find(library, "cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain) &&
      find(library, "cuDevicePrimaryCtxRelease_v2", cuda.cuDevicePrimaryCtxRelease) &&
      find(library, "cuCtxPushCurrent_v2", cuda.cuCtxPushCurrent) &&
      find(library, "cuCtxPopCurrent_v2", cuda.cuCtxPopCurrent) &&
      find(library, "cuThreadExchangeStreamCaptureMode", cuda.cuThreadExchangeStreamCaptureMode) &&
      find(library, "cuStreamCreate", cuda.cuStreamCreate) &&
      find(library, "cuStreamDestroy_v2", cuda.cuStreamDestroy) &&
      find(library, "cuStreamSynchronize", cuda.cuStreamSynchronize) &&
      find(library, "cuMemcpyHtoDAsync_v2", cuda.cuMemcpyHtoDAsync) &&
      find(library, "cuMemcpyDtoHAsync_v2", cuda.cuMemcpyDtoHAsync) &&
      find(library, "cuStreamQuery", cuda.cuStreamQuery) &&
      find(library, "cuMemcpyAsync", cuda.cuMemcpyAsync) &&
      find(library, "cuMemsetD32Async", cuda.cuMemsetD32Async) &&
      find(library, "cuMemGetAddressRange_v2", cuda.cuMemGetAddressRange) &&
      find(library, "cuIpcGetMemHandle", cuda.cuIpcGetMemHandle) &&
      find(library, "cuIpcOpenMemHandle_v2", cuda.cuIpcOpenMemHandle) &&
      find(library, "cuIpcCloseMemHandle", cuda.cuIpcCloseMemHandle) &&
      find(library, "cuMemHostGetDevicePointer_v2", cuda.cuMemHostGetDevicePointer) &&
      find(library, "cuMemHostRegister_v2", cuda.cuMemHostRegister) &&
      find(library, "cuMemHostUnregister", cuda.cuMemHostUnregister);
  return all ? std::optional(cuda) : std::nullopt;
}

// Returns how many libraries the process has loaded so far.
uint64_t loads() {
  uint64_t count = 0;
  const auto take = [](dl_phdr_info* first, size_t, void* out) {
    *static_cast<uint64_t*>(out) = first->dlpi_adds;
    return 1;  // the same for all
  };
  dl_iterate_phdr(take, &count);
  return count;
}

}  // namespace

// The library stays loaded, because copies may run until the process ends.
const Cuda* Cuda::loaded() {
  static std::atomic<const Cuda*> known = nullptr;
  if (const Cuda* const cuda = known.load(std::memory_order_acquire)) return cuda;
  // Looking for a library by name takes ten times as long as looking for new ones.
  static std::atomic<uint64_t> looked_after = UINT64_MAX;
  const uint64_t now = loads();
  if (looked_after.load(std::memory_order_relaxed) == now) return nullptr;
  static std::mutex mutex;
  static std::optional<Cuda> found;
  const std::lock_guard lock(mutex);
  if (!found) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    if (library == nullptr) {
      looked_after.store(now, std::memory_order_relaxed);
      return nullptr;
    }
    found = find_all(library);
    if (!found) return nullptr;
    known.store(&*found, std::memory_order_release);
  }
  return &*found;
}

CudaContext::CudaContext(int number) {
  const Cuda* const cuda = Cuda::loaded();
  const bool made = cuda != nullptr && cuda->cuDeviceGet(&device_, number) == 0 &&
                    cuda->cuDevicePrimaryCtxRetain(&context_, device_) == 0;
  if (!made) context_ = nullptr;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr) Cuda::loaded()->cuDevicePrimaryCtxRelease(device_);
}

}  // namespace urma
