#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace urma::drivers::cxl {

// Keeps this process alive when somebody cuts off the file under a mapping, or when its file system
// has no page left: whoever touches what is not there is sent SIGBUS. Then the whole mapping
// becomes zeros of our own, in which nobody lives and nothing comes, and is lost for good. No call
// of the system's would make it otherwise: a file with a name cannot be sealed against shrinking.
//
// The handler is the library's only one: there while there are guards, for faults inside guarded
// mappings; everything else goes to the one that was there before, and which is there again
// afterwards. Who installs one meanwhile, and calls ours for what it does not know, keeps it.
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

  // What the handler reads: never freed, but used again.
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
