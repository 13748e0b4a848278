// SPDX-License-Identifier: Apache-2.0
#include "base/lazy_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/region.h"

namespace urma {
namespace {

constexpr size_t line_bytes = 64;
constexpr size_t piece_bytes = 16 << 20;
// Smaller ranges are zeroed by memset, because a system call takes longer.
constexpr size_t small_bytes = 8 * 1024;

alignas(line_bytes) std::byte empty[line_bytes * 4];

// A piece of address space, divided into blocks of one size.
class Piece {
 public:
  explicit Piece(size_t block_bytes)
      : count_(std::max<size_t>(piece_bytes / block_bytes, 1)),
        free_(count_),
        vacant_((count_ + 63) / 64, ~uint64_t{0}),
        region_(count_ * block_bytes) {
    if (count_ % 64 != 0) vacant_.back() >>= 64 - count_ % 64;
  }

  std::byte* begin() const { return region_.data(); }
  bool holds(const std::byte* block) const { return block < begin() + region_.bytes(); }
  bool full() const { return free_ == 0; }
  bool unused() const { return free_ == count_; }

  std::byte* take(size_t block_bytes) {
    while (vacant_[hint_] == 0) hint_ = hint_ + 1 < vacant_.size() ? hint_ + 1 : 0;
    const auto bit = static_cast<size_t>(std::countr_zero(vacant_[hint_]));
    vacant_[hint_] &= vacant_[hint_] - 1;
    --free_;
    return begin() + (hint_ * 64 + bit) * block_bytes;
  }
  void give_back(const std::byte* block, size_t block_bytes) {
    const auto index = static_cast<size_t>(block - begin()) / block_bytes;
    URMA_ASSERT((vacant_[index / 64] >> index % 64 & 1) == 0, "a block is given back once");
    vacant_[index / 64] |= uint64_t{1} << index % 64;
    ++free_;
  }

 private:
  size_t count_;
  size_t free_;
  std::vector<uint64_t> vacant_;  // a bit for each block
  size_t hint_ = 0;
  Region region_;
};

// All pieces for one size of block, by their addresses.
struct Size {
  std::map<std::byte*, Piece, std::greater<>> pieces;
  Piece* latest = nullptr;  // the one in which a block was last found vacant
};

// All pieces of the process. A child of fork begins with none, because another thread of its parent
// may have held the mutex at the fork.
struct Space {
  // Stored at the beginning of a destroyed block until it is reclaimed.
  struct Ended {
    Ended* next;
    size_t lines;
  };

  Space() {
    if (page.data() == nullptr) throw std::bad_alloc();
    madvise(page.data(), page_bytes, MADV_WIPEONFORK);
    page.data()[0] = std::byte{1};
  }
  bool inherited() const { return page.data()[0] == std::byte{0}; }

  std::atomic<Ended*> ended{nullptr};
  std::mutex mutex;
  std::map<size_t, Size> sizes;
  Region page = Region::try_make(page_bytes, page_bytes);
};

// Never destroyed, because blocks may be destroyed as late as the process exits.
std::atomic<Space*> current{nullptr};

Space& space() {
  Space* found = current.load(std::memory_order_acquire);
  if (found != nullptr && !found->inherited()) return *found;
  auto made = std::make_unique<Space>();
  if (!current.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return *found;
  return *made.release();
}

Piece& piece_with_room(Size& size, size_t block_bytes) {
  if (size.latest != nullptr && !size.latest->full()) return *size.latest;
  for (auto& [begin, piece] : size.pieces) {
    if (!piece.full()) return *(size.latest = &piece);
  }
  Piece piece(block_bytes);
  std::byte* const begin = piece.begin();
  return *(size.latest = &size.pieces.emplace(begin, std::move(piece)).first->second);
}

// Whole pages are given back to the system, which provides zeroed ones when they are written again.
void make_zero(std::byte* begin, size_t bytes) {
  if (bytes < small_bytes) {
    std::memset(begin, 0, bytes);
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = -address % page_bytes;
  const size_t pages = (bytes - before) / page_bytes * page_bytes;
  std::memset(begin, 0, before);
  if (madvise(begin + before, pages, MADV_DONTNEED) != 0) std::memset(begin + before, 0, pages);
  std::memset(begin + before + pages, 0, bytes - before - pages);
}

void give_back(Space& all, std::byte* block, size_t lines) {
  const auto size_found = all.sizes.find(lines);
  if (size_found == all.sizes.end()) return;  // a block of the parent process
  Size& size = size_found->second;
  const auto found = size.pieces.lower_bound(block);
  if (found == size.pieces.end() || !found->second.holds(block)) return;
  found->second.give_back(block, lines * line_bytes);
  // One unused piece is kept, for programs that create and destroy blocks in turn.
  if (!found->second.unused() || size.pieces.size() == 1) return;
  if (size.latest == &found->second) size.latest = nullptr;
  size.pieces.erase(found);
}

void give_back_ended(Space& all) {
  Space::Ended* first = all.ended.exchange(nullptr, std::memory_order_acquire);
  while (first != nullptr) {
    const Space::Ended ended = *first;
    auto* const block = reinterpret_cast<std::byte*>(first);
    make_zero(block, ended.lines * line_bytes);
    give_back(all, block, ended.lines);
    first = ended.next;
  }
}

}  // namespace

LazyBlock::LazyBlock(size_t bytes) : data_(empty) {
  if (bytes == 0) return;
  // An odd number of lines, so that blocks begin in different sets of the first-level cache.
  const size_t lines = (bytes + line_bytes - 1) / line_bytes | 1;
  if (lines > UINT32_MAX >> 1) throw std::bad_alloc();
  Space& all = space();
  const std::lock_guard lock(all.mutex);
  give_back_ended(all);
  data_ = piece_with_room(all.sizes[lines], lines * line_bytes).take(lines * line_bytes);
  state_.store(static_cast<uint32_t>(lines << 1), std::memory_order_relaxed);
}

LazyBlock::~LazyBlock() {
  if (lines() == 0) return;
  Space& all = *current.load(std::memory_order_acquire);
  if (all.inherited()) return;
  if (touched()) {
    auto* const ended = new (data_) Space::Ended{nullptr, lines()};
    ended->next = all.ended.load(std::memory_order_relaxed);
    while (!all.ended.compare_exchange_weak(ended->next, ended, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
    return;
  }
  const std::lock_guard lock(all.mutex);
  give_back(all, data_, lines());
}

void LazyBlock::tidy() {
  if (current.load(std::memory_order_acquire) == nullptr) return;
  Space& all = *current.load(std::memory_order_acquire);
  if (all.inherited()) return;
  const std::lock_guard lock(all.mutex);
  give_back_ended(all);
}

}  // namespace urma
