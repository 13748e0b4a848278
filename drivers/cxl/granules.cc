// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/granules.h"

#include <sys/vfs.h>

#include <algorithm>
#include <cstring>

#include "base/file_system.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {

using Taken = SegmentMemory::Taken;

// Returns how many granules, from this one on, belong to a segment. A segment whose owner has given
// it back or died, and that no device holds, is free from now on. The caller holds the lock.
// `all_visible`: all devices that hold closed segments can be seen. This function makes that true
// if it is needed.
uint32_t Granules::taken_from(uint32_t segment, bool& all_visible) {
  SegmentRecord& here = record(segment);
  const uint32_t granules =
      std::min(here.granules.load(std::memory_order_relaxed), count() - segment);
  if (granules == 0) return 0;
  const uint32_t owner = here.owner.load(std::memory_order_relaxed);
  if (owner < slot_count &&
      words_.generation(owner) == here.owner_generation.load(std::memory_order_relaxed)) {
    return granules;
  }
  if (close_to_all(here)) all_visible = false;
  all_visible = all_visible || slots_.barriers().after_closing();
  if (!all_visible) return granules;
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (holds(slot, segment)) return granules;
  }
  here.granules.store(0, std::memory_order_relaxed);
  return 0;
}

Taken Granules::take(uint64_t bytes, uint32_t& segment) {
  const uint64_t wanted = granules_for(bytes);
  if (wanted == 0 || wanted > count() || !slots_.owned()) return Taken::no_room;
  const WindowLock lock(file_.descriptor());
  if (!lock.held()) return Taken::not_now;
  slots_.release_dead();
  uint32_t free = 0;
  bool all_visible = false;
  for (uint32_t granule = 0; granule < count() && free < wanted;) {
    const uint32_t taken = taken_from(granule, all_visible);
    free = taken == 0 ? free + 1 : 0;
    granule += std::max(taken, 1u);
    segment = granule - free;
  }
  if (free < wanted) return Taken::no_room;
  SegmentRecord& first = record(segment);
  close_to_all(first);  // a record of free memory is open only if another process has broken it
  first.bytes.store(bytes, std::memory_order_relaxed);
  first.owner.store(slots_.own(), std::memory_order_relaxed);
  first.owner_generation.store(words_.generation(slots_.own()), std::memory_order_relaxed);
  first.granules.store(static_cast<uint32_t>(wanted), std::memory_order_relaxed);
  return Taken::taken;
}

// The size is the one that was taken, not the one in the record now: the memory of other devices
// lies beside it.
bool Granules::empty(uint32_t segment, uint64_t bytes) const {
  // Huge pages are given back only whole; the others would keep their bytes.
  if (file_.pages().bytes > page_bytes || !slots_.owned()) return false;
  const uint64_t at = words_.offset_of(this->at(segment));
  return file_.give_back_memory(at, whole_bytes(bytes));
}

// A segment outside of the window can be written by packets, but without its two rings a pair of
// devices cannot communicate. So segments leave memory for the rings of the next few pairs.
bool Granules::leaves_room_for_rings() const {
  constexpr uint64_t kept_bytes = uint64_t{4} * 2 * ring_bytes;
  struct statfs room {};
  const int descriptor = file_.descriptor();
  if (!file_.is_file() || fstatfs(descriptor, &room) != 0) return true;
  const bool all_taken = allocated_bytes(descriptor) >= mapping_.bytes();
  const uint64_t free_bytes =
      static_cast<uint64_t>(room.f_bavail) * static_cast<uint64_t>(room.f_bsize);
  return all_taken || room.f_blocks == 0 || free_bytes >= kept_bytes;
}

bool Granules::zero(uint32_t segment, uint64_t bytes) {
  const bool emptied = empty(segment, bytes);
  std::byte* const base = at(segment);
  const uint64_t offset = words_.offset_of(base);
  if (!slots_.owned() || file_.take_memory(offset, whole_bytes(bytes)) != 0) return false;
  if (!leaves_room_for_rings()) {
    empty(segment, bytes);
    return false;
  }
  if (!emptied) std::memset(base, 0, bytes);
  return true;
}

}  // namespace urma::drivers::cxl
