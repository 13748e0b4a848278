// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/gpu_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "apps/common/failure.h"

namespace urma::apps::perf {

// The functions of CUDA's driver interface that are used here. Their results other than 0 are
// errors.
struct GpuMemory::Driver {
  int (*init)(unsigned flags);
  int (*device)(int* out, int number);
  int (*retain)(void** context, int device);
  int (*set_context)(void* context);
  int (*allocate)(uint64_t* at, size_t bytes);
  int (*free)(uint64_t at);
  int (*put)(uint64_t to, const void* from, size_t bytes);
  int (*get)(void* to, uint64_t from, size_t bytes);
  int (*explain)(int result, const char** text);

  static std::unique_ptr<const Driver> load() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (library == nullptr) return nullptr;
    auto made = std::make_unique<Driver>();
    const bool all =
        find(library, "cuInit", made->init) && find(library, "cuDeviceGet", made->device) &&
        find(library, "cuDevicePrimaryCtxRetain", made->retain) &&
        find(library, "cuCtxSetCurrent", made->set_context) &&
        find(library, "cuMemAlloc_v2", made->allocate) &&
        find(library, "cuMemFree_v2", made->free) && find(library, "cuMemcpyHtoD_v2", made->put) &&
        find(library, "cuMemcpyDtoH_v2", made->get) &&
        find(library, "cuGetErrorString", made->explain);
    return all ? std::move(made) : nullptr;
  }

 private:
  template <class Function>
  static bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
};

GpuMemory::GpuMemory(uint32_t number, size_t bytes) : driver_(Driver::load()), number_(number) {
  if (driver_ == nullptr) {
    throw Failure(Exit::error,
                  fmt::format("--memory cuda:{}: this process cannot load libcuda.so.1. Fix: "
                              "install NVIDIA's driver, or leave --memory out",
                              number));
  }
  int device = 0;
  void* context = nullptr;
  uint64_t at = 0;
  must(driver_->init(0), "starting CUDA");
  must(driver_->device(&device, static_cast<int>(number)), "finding this GPU");
  must(driver_->retain(&context, device), "using this GPU");
  must(driver_->set_context(context), "using this GPU");
  must(driver_->allocate(&at, bytes), "allocating memory of this GPU");
  memory_ = {reinterpret_cast<std::byte*>(at), bytes};
}

// The context stays until the process ends, as in other programs.
GpuMemory::~GpuMemory() { driver_->free(reinterpret_cast<uint64_t>(memory_.data())); }

void GpuMemory::put(size_t offset, std::span<const std::byte> from) {
  const auto to = reinterpret_cast<uint64_t>(memory_.data()) + offset;
  must(driver_->put(to, from.data(), from.size()), "copying to this GPU");
}

void GpuMemory::get(size_t offset, std::span<std::byte> to) const {
  const auto from = reinterpret_cast<uint64_t>(memory_.data()) + offset;
  must(driver_->get(to.data(), from, to.size()), "copying from this GPU");
}

void GpuMemory::must(int result, const char* what) const {
  if (result == 0) return;
  const char* text = nullptr;
  if (driver_->explain(result, &text) != 0 || text == nullptr) text = "unknown";
  throw Failure(Exit::error,
                fmt::format("--memory cuda:{}: {}: error {} of CUDA ({}). Fix: name a GPU that "
                            "nvidia-smi lists, and lower --size or --depth if memory is short",
                            number_, what, result, text));
}

}  // namespace urma::apps::perf
