#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace urma::drivers::cxl {

// Keeps this process alive when another one cuts off the file under a mapping, or when its file
// system has no page left: a thread that touches a missing page is sent SIGBUS. Then the whole
// mapping becomes zeros of this process's own, in which no peer is seen and nothing arrives, and is
// lost for good. No system call prevents it: a file with a name cannot be sealed against shrinking.
//
// The handler is the library's only one: there while there are guards, for faults inside guarded
// mappings; all other faults go to the handler that was there before, and which is there again
// afterwards. A handler that is installed meanwhile, and calls this one, stays.
class Guard {
 public:
  Guard() = default;
  Guard(std::byte* base, size_t bytes);
  Guard(Guard&& other) noexcept : watched_(std::exchange(other.watched_, nullptr)) {}
  Guard& operator=(Guard&& other) noexcept {
    std::swap(watched_, other.watched_);
    return *this;
  }
  // Before the mapping is taken away: what lies there later is not ours.
  ~Guard();

  bool lost() const { return watched_ != nullptr && watched_->lost.load(); }

  // The handler reads these, so they are never freed, but used again.
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
