// SPDX-License-Identifier: Apache-2.0
#include "tests/accelerator/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int ok = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int invalid_context = 201;
constexpr int not_ready = 600;
constexpr int launch_failed = 719;
constexpr int devices = 2;
constexpr size_t granularity = 2 << 20;

// The device's address range cannot be accessed; its bytes lie in a file that other processes open.
struct Allocation {
  int device = 0;
  size_t bytes = 0;
  size_t mapped = 0;
  std::byte* reserved = nullptr;
  size_t reserved_bytes = 0;
  std::byte* store = nullptr;
  int file = -1;
};

// A handle of CUDA IPC.
struct Handle {
  pid_t process;
  int file;
  int device;
  size_t bytes;
  uint64_t address;
  std::byte rest[32];
};
static_assert(sizeof(Handle) == 64);

struct Copy {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
  unsigned value;  // stored if `from` is null
};

struct Context {
  int device;
};
struct Stream {
  Context* context;
  std::vector<Copy> copies;
};

std::mutex mutex;
std::map<uint64_t, Allocation> allocations;
std::array<Context, devices> contexts{{{0}, {1}}};
std::array<int, devices> retained{};
std::set<Stream*> streams;
std::set<void*> pinned;
bool is_broken = false;
thread_local std::vector<Context*> current;

const std::pair<const uint64_t, Allocation>* find(uint64_t at) {
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return nullptr;
  --after;
  return at - after->first < after->second.bytes ? &*after : nullptr;
}

// Returns where these bytes of a device lie, or null if they are not all allocated.
std::byte* bytes_at(uint64_t at, size_t bytes) {
  const auto* const found = find(at);
  if (found == nullptr || bytes > found->second.bytes - (at - found->first)) return nullptr;
  return found->second.store + (at - found->first);
}

int begin(Stream* stream, const Copy& copy) {
  if (current.empty() || current.back() != stream->context) return invalid_context;
  if (copy.to == nullptr || copy.from == nullptr) return invalid_value;
  stream->copies.push_back(copy);
  return ok;
}

void run(const Copy& copy) {
  if (copy.from != nullptr) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  } else {
    std::atomic_ref(*reinterpret_cast<unsigned*>(copy.to))
        .store(copy.value, std::memory_order_release);
  }
}

// Adds an allocation whose bytes lie in this file, and returns its address, or 0.
uint64_t add(int device, size_t bytes, int file) {
  const size_t mapped = (bytes + granularity - 1) / granularity * granularity;
  void* const reserved = mmap(nullptr, mapped + granularity, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* const store = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (reserved == MAP_FAILED || store == MAP_FAILED) return 0;
  const uint64_t at =
      (reinterpret_cast<uint64_t>(reserved) + granularity - 1) / granularity * granularity;
  allocations[at] = {.device = device,
                     .bytes = bytes,
                     .mapped = mapped,
                     .reserved = static_cast<std::byte*>(reserved),
                     .reserved_bytes = mapped + granularity,
                     .store = static_cast<std::byte*>(store),
                     .file = file};
  return at;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return ok; }

int cuDeviceGetCount(int* count) {
  *count = devices;
  return ok;
}

int cuDeviceGet(int* device, int number) {
  *device = number;
  return number >= 0 && number < devices ? ok : invalid_value;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard lock(mutex);
  ++retained[static_cast<size_t>(device)];
  *context = &contexts[static_cast<size_t>(device)];
  return ok;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard lock(mutex);
  --retained[static_cast<size_t>(device)];
  return ok;
}

int cuCtxPushCurrent_v2(void* context) {
  current.push_back(static_cast<Context*>(context));
  return ok;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return invalid_context;
  *context = current.back();
  current.pop_back();
  return ok;
}

int cuCtxSetCurrent(void* context) {
  current.assign(1, static_cast<Context*>(context));
  return ok;
}

int cuMemAlloc_v2(uint64_t* at, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return invalid_context;
  const int file = memfd_create("fake GPU", MFD_CLOEXEC);
  const size_t mapped = (bytes + granularity - 1) / granularity * granularity;
  if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) return out_of_memory;
  *at = add(current.back()->device, bytes, file);
  return *at != 0 ? ok : out_of_memory;
}

int cuMemFree_v2(uint64_t at) {
  const std::lock_guard lock(mutex);
  const auto found = allocations.find(at);
  if (found == allocations.end()) return invalid_value;
  munmap(found->second.reserved, found->second.reserved_bytes);
  munmap(found->second.store, found->second.mapped);
  close(found->second.file);
  allocations.erase(found);
  return ok;
}

int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t at) {
  const std::lock_guard lock(mutex);
  const auto* const found = find(at);
  if (found == nullptr) return invalid_value;
  *base = found->first;
  *bytes = found->second.bytes;
  return ok;
}

int cuIpcGetMemHandle(Handle* handle, uint64_t base) {
  const std::lock_guard lock(mutex);
  const auto* const found = find(base);
  if (found == nullptr || found->first != base) return invalid_value;
  *handle = {.process = getpid(),
             .file = found->second.file,
             .device = found->second.device,
             .bytes = found->second.bytes,
             .address = base,
             .rest = {}};
  return ok;
}

// As the driver, it does not open memory of the process itself.
int cuIpcOpenMemHandle_v2(uint64_t* base, Handle handle, unsigned) {
  const std::lock_guard lock(mutex);
  if (current.empty() || handle.process == getpid()) return invalid_context;
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return invalid_value;
  *base = add(handle.device, handle.bytes, file);
  return *base != 0 ? ok : out_of_memory;
}

int cuIpcCloseMemHandle(uint64_t base) { return cuMemFree_v2(base); }

int cuPointerGetAttribute(void* out, int attribute, uint64_t at) {
  const std::lock_guard lock(mutex);
  const auto* const found = find(at);
  if (found == nullptr) return invalid_value;
  constexpr int memory_type = 2;
  constexpr int is_managed = 8;
  constexpr int device_ordinal = 9;
  constexpr unsigned device_memory = 2;
  if (attribute == memory_type) *static_cast<unsigned*>(out) = device_memory;
  if (attribute == is_managed) *static_cast<unsigned*>(out) = 0;
  if (attribute == device_ordinal) *static_cast<int*>(out) = found->second.device;
  return ok;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int of_thread = 0;
  std::swap(*mode, of_thread);
  return ok;
}

int cuStreamCreate(void** stream, unsigned) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return invalid_context;
  auto made = std::make_unique<Stream>(Stream{current.back(), {}});
  streams.insert(made.get());
  *stream = made.release();
  return ok;
}

int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(mutex);
  auto* const known = static_cast<Stream*>(stream);
  streams.erase(known);
  delete known;
  return ok;
}

int cuStreamSynchronize(void* stream) {
  const std::lock_guard lock(mutex);
  auto* const known = static_cast<Stream*>(stream);
  if (current.empty() || current.back() != known->context) return invalid_context;
  if (is_broken) return launch_failed;
  for (const Copy& copy : known->copies) run(copy);
  known->copies.clear();
  return ok;
}

// Nothing runs by itself here: each question lets the stream take one step.
int cuStreamQuery(void* stream) {
  const std::lock_guard lock(mutex);
  auto* const known = static_cast<Stream*>(stream);
  if (current.empty() || current.back() != known->context) return invalid_context;
  if (is_broken) return launch_failed;
  if (known->copies.empty()) return ok;
  run(known->copies.front());
  known->copies.erase(known->copies.begin());
  return known->copies.empty() ? ok : not_ready;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  return begin(static_cast<Stream*>(stream),
               {bytes_at(to, bytes), bytes_at(from, bytes), bytes, 0});
}

// Sets registered memory of the host.
int cuMemsetD32Async(uint64_t to, unsigned value, size_t, void* stream) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return invalid_context;
  static_cast<Stream*>(stream)->copies.push_back(
      {reinterpret_cast<std::byte*>(to), nullptr, sizeof value, value});
  return ok;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  const auto* const there = static_cast<const std::byte*>(from);
  return begin(static_cast<Stream*>(stream), {bytes_at(to, bytes), there, bytes, 0});
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  auto* const here = static_cast<std::byte*>(to);
  return begin(static_cast<Stream*>(stream), {here, bytes_at(from, bytes), bytes, 0});
}

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  const std::lock_guard lock(mutex);
  std::byte* const there = bytes_at(to, bytes);
  if (there == nullptr) return invalid_value;
  std::memcpy(there, from, bytes);
  return ok;
}

int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  const std::lock_guard lock(mutex);
  const std::byte* const there = bytes_at(from, bytes);
  if (there == nullptr) return invalid_value;
  std::memcpy(to, there, bytes);
  return ok;
}

int cuMemHostRegister_v2(void* memory, size_t, unsigned) {
  const std::lock_guard lock(mutex);
  return pinned.insert(memory).second ? ok : invalid_value;
}

int cuMemHostGetDevicePointer_v2(uint64_t* out, void* memory, unsigned) {
  *out = reinterpret_cast<uint64_t>(memory);
  return ok;
}

int cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(mutex);
  return pinned.erase(memory) == 1 ? ok : invalid_value;
}

int cuGetErrorString(int, const char** text) {
  *text = "an error of the fake";
  return ok;
}

int fake_cuda_held() {
  const std::lock_guard lock(mutex);
  return retained[0] + retained[1] + static_cast<int>(streams.size() + pinned.size());
}

void fake_cuda_break(int broken) {
  const std::lock_guard lock(mutex);
  is_broken = broken != 0;
}
}
