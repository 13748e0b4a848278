// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cuda.h"
#include "base/region.h"

namespace urma {

// Copies between memory of the process and registered memory of accelerators (AcceleratorMemory).
// They run on streams of its own, so they wait for no work of the application on an accelerator,
// and none waits for them. Used by one thread at a time.
class AcceleratorCopies {
 public:
  AcceleratorCopies() = default;
  AcceleratorCopies(const AcceleratorCopies&) = delete;
  ~AcceleratorCopies();

  // To be called before the first copy of this accelerator's memory; further calls do nothing.
  // Returns false if its driver refuses.
  bool open(int number);
  // Lets accelerators copy this memory of the process at their full speed, until it is unpinned.
  // Call it after `open`. Copies are right without it, too.
  void pin(std::span<std::byte> memory);
  void unpin() { unpin(pinned_); }

  // Begins to copy at most most_bytes to an accelerator's memory; `from` may change afterwards.
  // Copies of one `owner` whose destinations follow each other are made together. Returns false if
  // the driver refuses, for instance because the application has freed the memory.
  static constexpr size_t most_bytes = 64 * 1024;
  bool begin(std::byte* to, const std::byte* from, size_t bytes, uint64_t owner);
  // Copies from an accelerator's memory, and returns when that is done.
  bool copy(std::byte* to, const std::byte* from, size_t bytes);
  // Waits for what was begun. Returns false if something of this owner was not copied. An
  // accelerator that has failed once stays unusable.
  bool finish(uint64_t owner);
  // Waits for what was begun. If something is not copied, `finish` will say so.
  void settle() {
    if (used_ > 0) settle_begun();
  }

 private:
  struct Way {
    CudaContext context{};
    CUstream stream = nullptr;
    bool failed = false;
  };

  // Memory that an accelerator copies at its full speed.
  struct Pinned {
    std::span<std::byte> memory{};
    CUcontext context = nullptr;
  };
  // Data that lies in `landing_` and was not given to the driver yet.
  struct Waiting {
    std::byte* to = nullptr;
    size_t from = 0;  // in `landing_`
    size_t bytes = 0;
    uint64_t owner = 0;
  };

  // Data that was given to the driver.
  struct Sent {
    int number;  // of the accelerator
    uint64_t owner;
  };

  static Pinned pin_in(CUcontext context, std::span<std::byte> memory);
  static void unpin(Pinned& pinned);
  void send_waiting();
  void settle_begun();
  void lose(uint64_t owner);
  bool take_lost(uint64_t owner);

  static constexpr size_t landing_bytes = 64 * most_bytes;
  static constexpr size_t most_sent = 1024;
  static constexpr size_t most_lost = 1024;

  std::array<Way, Cuda::most_devices> ways_{};
  Pinned pinned_;
  Region landing_;
  Pinned pinned_landing_;
  size_t used_ = 0;  // of `landing_`, since the last `finish`
  Waiting waiting_;
  std::vector<Sent> sent_;      // since the last `settle`
  std::vector<uint64_t> lost_;  // owners of which something was not copied
};

}  // namespace urma
