// SPDX-License-Identifier: Apache-2.0
#include "base/cuda.h"

#include <dlfcn.h>

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

}  // namespace

// The library stays loaded, because copies may run until the process ends.
const Cuda* Cuda::loaded() {
  static std::atomic<const Cuda*> known = nullptr;
  if (const Cuda* const cuda = known.load(std::memory_order_acquire)) return cuda;
  static std::mutex mutex;
  static std::optional<Cuda> found;
  const std::lock_guard lock(mutex);
  if (!found) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    if (library == nullptr) return nullptr;
    found = find_all(library);
    if (!found) return nullptr;
    known.store(&*found, std::memory_order_release);
  }
  return &*found;
}

}  // namespace urma
