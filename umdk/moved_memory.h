// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "umdk/own_process.h"

namespace urma::umdk {

// Memory of this process that the program has registered, and which part of it was moved into a
// window: its pages are those of the window now, at the address that the program knows, so peers
// access it by plain copies. The program asks for it by URMA_SEGMENTS=window.
//
// No store is lost, because memory is moved only while no other thread can store to it: there is
// none but those of this copy of the library, which store to registered memory only. A child made
// by fork() gets private pages with a copy, for which the thread that forks waits. The copy is not
// of one moment: of what other threads and peers store meanwhile, it may have any part.
//
// Any thread calls it.
class MovedMemory {
 public:
  static MovedMemory& get();

  // Returns whether the program wants its memory moved.
  static bool is_wanted();
  // Returns null if `memory` can be moved now, or else why not. Call it before `note`.
  const char* obstacle(std::span<std::byte> memory);
  // Replaces the pages of `memory` by those of a window, which another mapping of this process
  // shows at `window`, and copies the content there. If it returns false, nothing has changed.
  bool move_in(std::span<std::byte> memory, std::byte* window) noexcept;
  // Undoes that: whatever shows the pages and is not a mapping of the whole window gets private
  // pages with the same content. So memory that the program has unmapped is left alone, and memory
  // that it has moved (mremap) is found. Returns false if this is not possible now: there are other
  // threads, or other segments in the same memory. Call it after `forget`.
  bool move_out(std::byte* window);

  // Records which memory is registered, by any context.
  void note(std::span<std::byte> memory);
  void forget(std::span<std::byte> memory);

  // Around fork().
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  // The pages of a window that memory has.
  struct Moved {
    std::span<std::byte> memory;
    Mapped pages;  // where they are in the file
  };

  bool is_registered(std::span<std::byte> memory) const;

  std::mutex mutex_;
  std::vector<std::span<std::byte>> registered_;
  std::vector<Moved> moved_;
  int child_is_done_[2] = {-1, -1};  // a pipe, which ends when the child has its pages
};

}  // namespace urma::umdk
