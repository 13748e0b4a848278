// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace urma::drivers::cxl {

// Keeps this process alive when another process truncates the file under a mapping, or when the
// file system has no page left: a thread that touches a missing page receives SIGBUS. The handler
// then replaces the whole mapping by private pages of zeros, in which no peer exists and no message
// arrives; the window is lost for this process. No system call prevents such a truncation: a file
// with a name cannot be sealed against shrinking.
//
// This is the only signal handler of the library. It is installed while guards exist, and handles
// faults inside guarded mappings; it passes all other faults to the previous handler, which is
// restored afterwards. A handler that the application installs meanwhile, and that calls this one,
// stays.
class Guard {
 public:
  Guard() = default;
  Guard(std::byte* base, size_t bytes);
  Guard(Guard&& other) noexcept : watched_(std::exchange(other.watched_, nullptr)) {}
  Guard& operator=(Guard&& other) noexcept {
    std::swap(watched_, other.watched_);
    return *this;
  }
  // The guard must be destroyed before the mapping is unmapped, because other memory may be mapped
  // there later.
  ~Guard();

  bool lost() const { return watched_ != nullptr && watched_->lost.load(); }

  // The handler reads these entries, so they are never freed, only used again.
  struct Watched {
    std::atomic<std::byte*> base{nullptr};
    std::atomic<size_t> bytes{0};  // 0: nothing is watched
    std::atomic<bool> lost{false};
    bool used = true;
    Watched* next = nullptr;
  };

 private:
  Watched* watched_ = nullptr;
};

}  // namespace urma::drivers::cxl
