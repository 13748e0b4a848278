// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "base/region.h"

namespace urma::engine {

// Shows whether this process made the object or is a forked child that has a copy of it. The kernel
// clears the page in a child, so checking needs no system call. Called by any thread.
//
// It also shows whether the device is profiled, so that the data path asks by one branch whether a
// call is of the usual kind: in the process that made the object, and not profiled.
class ForkMark {
 public:
  // Throws std::bad_alloc.
  explicit ForkMark(bool profiled = false) {
    if (page_.data() == nullptr) throw std::bad_alloc();
    madvise(page_.data(), page_.bytes(), MADV_WIPEONFORK);
    made_here_ = reinterpret_cast<std::atomic<uint32_t>*>(page_.data());
    made_here_->store(profiled ? profiled_here : usual);
  }

  bool here() const { return *made_here_ != 0; }
  // Returns whether this process made the object, and the device is not profiled.
  bool takes_fast_path() const { return *made_here_ == usual; }

 private:
  static constexpr uint32_t usual = 1;
  static constexpr uint32_t profiled_here = 2;

  Region page_ = Region::try_make(4096, 4096);  // a page that holds nothing else
  std::atomic<uint32_t>* made_here_;
};

}  // namespace urma::engine
