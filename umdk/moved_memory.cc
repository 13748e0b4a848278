// SPDX-License-Identifier: Apache-2.0
#include "umdk/moved_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "umdk/no_signals.h"

namespace urma::umdk {
namespace {

constexpr size_t page_bytes = 4096;

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Replaces the pages at `memory` by those at `fresh`, which has the same size and content, and is
// unmapped. The kernel may find no memory for that after it has removed the old ones.
bool replace(std::span<std::byte> memory, void* fresh) {
  if (mremap(fresh, memory.size(), memory.size(), MREMAP_MAYMOVE | MREMAP_FIXED, memory.data()) !=
      MAP_FAILED) {
    return true;
  }
  if (!is_plain(memory)) {
    void* const again = mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (again != MAP_FAILED) std::memcpy(again, fresh, memory.size());
  }
  munmap(fresh, memory.size());
  return false;
}

bool make_private(std::span<std::byte> memory) {
  void* const fresh =
      mmap(nullptr, memory.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  std::memcpy(fresh, memory.data(), memory.size());
  return replace(memory, fresh);
}

// Returns where the library has mapped the whole of a window, whose file begins there.
bool is_whole_window_at(uintptr_t begin, const Mapped& file) {
  const auto there = mapped_at(begin);
  return there && there->begin == begin && there->offset == 0 && there->is_same_file(file);
}

// Returns memory that has some of these pages, and belongs to the program. Empty if there is none.
std::span<std::byte> memory_with(const Mapped& pages) {
  const uint64_t last = pages.offset + (pages.end - pages.begin);
  MappedRanges ranges;
  while (const auto one = ranges.next()) {
    if (!one->is_shared || !one->is_same_file(pages)) continue;
    const uint64_t from = std::max(one->offset, pages.offset);
    const uint64_t to = std::min(one->offset + (one->end - one->begin), last);
    if (from >= to || is_whole_window_at(one->begin - one->offset, pages)) continue;
    return {reinterpret_cast<std::byte*>(one->begin + (from - one->offset)), to - from};
  }
  return {};
}

// Returns whether no memory of the program has these pages any more.
bool make_all_private(const Mapped& pages) {
  for (;;) {
    const std::span<std::byte> memory = memory_with(pages);
    if (memory.empty()) return true;
    if (!make_private(memory)) return false;
  }
}

void close_end(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

// Returns which pages of a window are shown at an address; nothing if there is no window.
std::optional<Mapped> pages_at(std::byte* window, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(window);
  const auto shown = mapped_at(begin);
  if (!shown || !shown->is_shared || begin + bytes > shown->end) return std::nullopt;
  Mapped pages = *shown;
  pages.offset += begin - shown->begin;
  pages.begin = begin;
  pages.end = begin + bytes;
  return pages;
}

}  // namespace

MovedMemory& MovedMemory::get() {
  static auto* const only = [] {
    auto* const made = new MovedMemory;
    pthread_atfork([] { get().before_fork(); }, [] { get().after_fork_in_parent(); },
                   [] { get().after_fork_in_child(); });
    return made;
  }();
  return *only;
}

bool MovedMemory::is_wanted() {
  const char* const chosen = std::getenv("URMA_SEGMENTS");
  return chosen != nullptr && std::string_view(chosen) == "window";
}

bool MovedMemory::is_registered(std::span<std::byte> memory) const {
  return std::ranges::any_of(registered_, [&](const auto& one) { return overlap(one, memory); });
}

const char* MovedMemory::obstacle(std::span<std::byte> memory) {
  const std::lock_guard held(mutex_);
  if (reinterpret_cast<uintptr_t>(memory.data()) % page_bytes != 0 ||
      memory.size() % page_bytes != 0) {
    return "it is not made of whole pages of 4096 bytes";
  }
  if (is_registered(memory)) return "it overlaps another segment";
  if (has_other_threads()) return "the program has other threads, which may store to it";
  if (!is_plain(memory)) return "it is not ordinary private memory";
  return nullptr;
}

bool MovedMemory::move_in(std::span<std::byte> memory, std::byte* window) noexcept {
  const std::lock_guard held(mutex_);
  try {
    const auto pages = pages_at(window, memory.size());
    if (!pages) return false;
    moved_.push_back({memory, *pages});
  } catch (const std::bad_alloc&) {
    return false;
  }
  const NoSignals none;  // their handlers could store to the memory
  // With an old size of 0, a shared mapping is shown a second time.
  void* const second = mremap(window, 0, memory.size(), MREMAP_MAYMOVE);
  bool done = second != MAP_FAILED && madvise(second, memory.size(), MADV_DOFORK) == 0;
  if (done) {
    std::memcpy(second, memory.data(), memory.size());
    done = replace(memory, second);
  } else if (second != MAP_FAILED) {
    munmap(second, memory.size());
  }
  if (!done) moved_.pop_back();
  return done;
}

bool MovedMemory::move_out(std::byte* window) {
  const std::lock_guard held(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(window);
  const auto found =
      std::ranges::find_if(moved_, [&](const Moved& one) { return one.pages.begin == begin; });
  if (found == moved_.end()) return true;  // this is a child, which has pages of its own
  if (is_registered(found->memory) || has_other_threads()) return false;
  const NoSignals none;
  if (!make_all_private(found->pages)) return false;
  moved_.erase(found);
  return true;
}

void MovedMemory::note(std::span<std::byte> memory) {
  const std::lock_guard held(mutex_);
  registered_.push_back(memory);
}

void MovedMemory::forget(std::span<std::byte> memory) {
  const std::lock_guard held(mutex_);
  const auto found = std::ranges::find_if(registered_, [&](const auto& one) {
    return one.data() == memory.data() && one.size() == memory.size();
  });
  if (found != registered_.end()) registered_.erase(found);
}

// ---- fork

void MovedMemory::before_fork() {
  mutex_.lock();
  // Without a pipe, the parent does not wait, so the child may see what the parent stores next.
  if (!moved_.empty() && pipe2(child_is_done_, O_CLOEXEC) != 0) {
    child_is_done_[0] = child_is_done_[1] = -1;
  }
}

void MovedMemory::after_fork_in_parent() {
  close_end(child_is_done_[1]);
  if (child_is_done_[0] >= 0) {
    char none = 0;
    while (::read(child_is_done_[0], &none, 1) < 0 && errno == EINTR) {
    }
  }
  close_end(child_is_done_[0]);
  mutex_.unlock();
}

// The child has this thread only. Memory for which it has no pages is taken from it, since what it
// stored there would be the parent's.
void MovedMemory::after_fork_in_child() {
  for (const Moved& one : moved_) {
    if (make_all_private(one.pages)) continue;
    for (auto rest = memory_with(one.pages); !rest.empty(); rest = memory_with(one.pages)) {
      if (munmap(rest.data(), rest.size()) != 0) std::abort();
    }
  }
  moved_.clear();
  close_end(child_is_done_[0]);
  close_end(child_is_done_[1]);
  mutex_.unlock();
}

}  // namespace urma::umdk
