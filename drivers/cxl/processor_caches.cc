// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/caches.h"
#include "drivers/cxl/layout.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace urma::drivers::cxl {
namespace {

// Calls `each` once for each line of `step` bytes that contains some of these bytes.
template <class Function>
void for_lines(const void* at, size_t bytes, size_t step, Function&& each) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  for (uintptr_t line = begin / step * step; line < begin + bytes; line += step) {
    each(reinterpret_cast<char*>(line));
  }
}

#if defined(__x86_64__)

class ProcessorCaches final : public Caches {
 public:
  ProcessorCaches() {
    constexpr unsigned features = 7;
    constexpr unsigned clflushopt_bit = 1 << 23;
    constexpr unsigned clwb_bit = 1 << 24;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(features, 0, &a, &b, &c, &d) == 0) return;
    has_clflushopt_ = (b & clflushopt_bit) != 0;
    has_clwb_ = (b & clwb_bit) != 0;
  }

  void write_back(const void* at, size_t bytes) override {
    if (!has_clwb_) return flush(at, bytes);
    for_lines(at, bytes, line_bytes, [](char* line) {
      asm volatile("clwb %0" : "+m"(*line)::"memory");
    });
    asm volatile("sfence" ::: "memory");
  }
  void refresh(const void* at, size_t bytes) override { flush(at, bytes); }

 private:
  // Only mfence keeps loads behind a clflushopt.
  void flush(const void* at, size_t bytes) const {
    if (has_clflushopt_) {
      for_lines(at, bytes, line_bytes, [](char* line) {
        asm volatile("clflushopt %0" : "+m"(*line)::"memory");
      });
    } else {
      for_lines(at, bytes, line_bytes, [](char* line) {
        asm volatile("clflush %0" : "+m"(*line)::"memory");
      });
    }
    asm volatile("mfence" ::: "memory");
  }

  bool has_clflushopt_ = false;
  bool has_clwb_ = false;
};

#elif defined(__aarch64__)

class ProcessorCaches final : public Caches {
 public:
  ProcessorCaches() {
    uint64_t type = 0;
    asm("mrs %0, ctr_el0" : "=r"(type));
    const size_t smallest = size_t{4} << (type >> 16 & 15);
    step_ = smallest < line_bytes ? smallest : line_bytes;
  }

  void write_back(const void* at, size_t bytes) override {
    for_lines(at, bytes, step_, [](char* line) {
      asm volatile("dc cvac, %0" ::"r"(line) : "memory");
    });
    asm volatile("dsb sy" ::: "memory");
  }
  void refresh(const void* at, size_t bytes) override {
    for_lines(at, bytes, step_, [](char* line) {
      asm volatile("dc civac, %0" ::"r"(line) : "memory");
    });
    asm volatile("dsb sy" ::: "memory");
  }

 private:
  size_t step_ = line_bytes;
};

#endif

}  // namespace

std::unique_ptr<Caches> processor_caches() {
#if defined(__x86_64__) || defined(__aarch64__)
  return std::make_unique<ProcessorCaches>();
#else
  return nullptr;
#endif
}

}  // namespace urma::drivers::cxl
