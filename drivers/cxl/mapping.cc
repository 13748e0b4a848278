// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "drivers/cxl/acted_caches.h"
#include "urma/core/setting.h"

namespace urma::drivers::cxl {

Mapping::~Mapping() {
  guard_ = Guard();
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
}

Error Mapping::cannot_map(int error) const {
  const bool no_memory = error == ENOMEM;
  Failed begun =
      file_.errors().failed(no_memory ? Status::no_resources : Status::io_error,
                            "cannot be mapped (", size_text(bytes_), "): ", std::strerror(error));
  if (no_memory) {
    return std::move(begun).fix(
        "allow more address space (ulimit -v), or choose a smaller window; in hugetlbfs, free "
        "huge pages");
  }
  return std::move(begun).fix(
      "name a file in /dev/shm or hugetlbfs (with free huge pages), a /dev/dax device "
      "or a prefetchable BAR; a size that is what the device has");
}

Result<void> Mapping::map(uint64_t bytes, bool coherent, uint64_t double_seed) {
  bytes_ = bytes;
  const Result<int> again = file_.open_again();
  if (!again) return again.error();
  void* const at =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *again, 0);
  const int why = errno;
  close(*again);
  if (at == MAP_FAILED) return cannot_map(why);
  mapped_ = static_cast<std::byte*>(at);
  work_on(mapped_);
  if (file_.pages().asked) madvise(mapped_, bytes_, MADV_HUGEPAGE);
  if (file_.is_file()) guard_ = Guard(mapped_, bytes_);
  return coherent ? Result<void>() : put_caches_between(double_seed);
}

void Mapping::work_on(std::byte* base) {
  words_ =
      SharedWords({.base = base, .mapping = mapped_, .caches = caches_.get()}, Parts::of(bytes_));
}

Result<void> Mapping::put_caches_between(uint64_t double_seed) {
  if (double_seed != 0) {
    auto acted = ActedCaches::make(mapped_, bytes_, double_seed);
    if (acted == nullptr) {
      return file_.errors()
          .failed(
              Status::no_resources,
              "cannot be copied for the test option double=, which simulates caches in a copy: ",
              std::strerror(errno))
          .fix("choose a smaller window: cxl:PATH?size=16M");
    }
    std::byte* const copy = acted->copy();
    caches_ = std::move(acted);
    work_on(copy);
    return {};
  }
  caches_ = processor_caches();
  work_on(mapped_);
  if (caches_ != nullptr) return {};
  return file_.errors()
      .failed(Status::unsupported,
              "is not coherent, and this library cannot write back the caches of this processor")
      .fix("use x86-64 or aarch64, or a window that is coherent");
}

bool Mapping::map_again(std::byte* at, uint64_t bytes) {
  const Result<int> again = file_.open_again();
  if (!again) return false;
  const auto offset = static_cast<off_t>(words_.offset_of(at));
  void* const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE | MAP_FIXED, *again, offset);
  close(*again);
  return mapped != MAP_FAILED;
}

}  // namespace urma::drivers::cxl
