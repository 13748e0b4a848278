// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/segments.h"

#include <sys/mman.h>

#include <cstring>

namespace urma::drivers::cxl {

using Taken = SegmentMemory::Taken;

Segments::Segments(Mapping& mapping, Slots& slots, HandOver* hand_over)
    : mapping_(mapping),
      slots_(slots),
      hand_over_(hand_over),
      granules_(mapping, slots, hand_over != nullptr),
      moved_(std::make_unique<std::atomic<bool>[]>(granules_.count())) {
  if (hand_over != nullptr) {
    handed_over_.emplace(*hand_over, mapping.words(), slots, granules_, moved_.get());
  }
}

Taken Segments::take(uint64_t bytes, Lease& lease) {
  const Taken taken = granules_.take(bytes, lease.number);
  if (taken != Taken::taken) return taken;
  lease.address = address_of(lease.number, 0);
  lease.base = granules_.at(lease.number);
  lease.bytes = bytes;
  if (hand_over_ == nullptr) return Taken::taken;
  lease.base = hand_over_->own().reserve(lease.number, bytes);
  if (lease.base != nullptr) return Taken::taken;
  granules_.undo(lease.number);
  return Taken::no_room;
}

bool Segments::prepare(const Lease& lease) {
  if (hand_over_ != nullptr) return slots_.owned() && hand_over_->own().make(lease.number);
  return granules_.zero(lease.number, lease.bytes);
}

void Segments::grant(const Lease& lease, const Grant& grant) {
  if (!slots_.owned()) return;
  SegmentRecord& record = granules_.record(lease.number);
  record.token_id.store(number(grant.id), std::memory_order_relaxed);
  // The record may be open: a device that reads one of the two values now finds a valid token.
  const bool secret = hand_over_ != nullptr;  // each process that maps the window reads records
  record.older_token.store(secret ? 0 : number(grant.older), std::memory_order_relaxed);
  record.token.store(secret ? 0 : number(grant.token), std::memory_order_relaxed);
  record.unchecked.store(grant.checked ? 0 : 1, std::memory_order_relaxed);
  record.rights.store(static_cast<uint32_t>(grant.rights), std::memory_order_relaxed);
  record.atomics.store(static_cast<uint32_t>(grant.atomics), std::memory_order_relaxed);
  const uint32_t file = hand_over_ != nullptr ? hand_over_->own().grant(lease.number, grant) : 0;
  record.file.store(file, std::memory_order_relaxed);
  // The file is handed to no device, and the window contains no memory of this segment.
  if (hand_over_ != nullptr && file == 0) return;
  const uint64_t epoch = record.epoch.load(std::memory_order_relaxed);
  // If it is open already, nothing has changed for its holders.
  record.epoch.store(is_open(epoch) ? epoch : epoch + 1, std::memory_order_release);
}

void Segments::revoke(const Lease& lease) {
  if (hand_over_ != nullptr) hand_over_->own().close(lease.number);
  if (!slots_.owned()) return;
  close_to_all(granules_.record(lease.number));
  closed_ = true;
}

void Segments::revoke_all() {
  if (hand_over_ != nullptr) hand_over_->own().close_all();
  if (!slots_.owned()) return;
  for (uint32_t segment = 0; segment < granules_.count(); ++segment) {
    SegmentRecord& record = granules_.record(segment);
    const bool ours =
        record.granules.load(std::memory_order_relaxed) > 0 &&
        record.owner.load(std::memory_order_relaxed) == slots_.own() &&
        record.owner_generation.load(std::memory_order_relaxed) == slots_.own_generation();
    if (ours) close_to_all(record);
  }
  closed_ = true;
}

// The holds of a device whose process has died do not count. One barrier serves all segments that
// were closed before it. If the kernel refuses it, which it did not when the window was opened,
// each segment counts as held, so the caller moves the segment.
bool Segments::held(const Lease& lease) {
  if (!mapping_.file().here()) return false;
  if (closed_ && !slots_.barriers().after_closing()) return true;
  closed_ = false;
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (granules_.holds(slot, lease.number) && slots_.inhabited(slot)) return true;
  }
  return false;
}

// Private pages take the place of the file's in one step, so that the owner's address always has
// memory. Parts of huge pages cannot be replaced, and pages of a device cannot be replaced at all.
bool Segments::move(const Lease& lease) {
  const bool movable = hand_over_ != nullptr
                           ? mapping_.file().here()
                           : mapping_.file().is_file() &&
                                 mapping_.file().pages().bytes <= page_bytes && slots_.owned();
  if (!movable) return false;
  const size_t bytes = mapped_bytes(lease);
  void* const fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  std::memcpy(fresh, lease.base, lease.bytes);
  if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, lease.base) == MAP_FAILED) {
    munmap(fresh, bytes);
    return false;
  }
  moved_[lease.number] = true;
  return true;
}

bool Segments::restore(const Lease& lease) {
  if (hand_over_ != nullptr) {
    hand_over_->own().release(lease.number);
    return true;
  }
  if (!moved_[lease.number]) return true;
  // If another process has truncated the file, the private zeros stay mapped.
  if (!slots_.owned() || !mapping_.map_again(lease.base, mapped_bytes(lease))) return false;
  moved_[lease.number] = false;
  return true;
}

void Segments::empty(const Lease& lease) {
  if (hand_over_ == nullptr) granules_.empty(lease.number, lease.bytes);
}

// The next device that needs the granules first checks whether another device still holds the
// segment.
void Segments::give_back(const Lease& lease) {
  OwnFiles::SlotSet users{};
  if (hand_over_ != nullptr) {
    users = hand_over_->own().users(lease.number);
    hand_over_->own().drop(lease.number);
    moved_[lease.number] = false;
  }
  if (!slots_.owned()) return;
  granules_.give_back(lease.number);
  // The memory stays in use as long as one of the users maps it, and users may sleep, so they are
  // woken.
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (OwnFiles::among(users, slot)) handed_over_->notify(slot);
  }
}

Quarantined Segments::quarantined(uint32_t segment, uint32_t slot) const {
  return {.address = address_of(segment, 0),
          .bytes = granules_.record(segment).bytes.load(std::memory_order_relaxed),
          .held_by = slots_.endpoint_of(slot)};
}

// Revoked files of this device's own that other devices map, and that were not moved.
size_t Segments::left_over(std::span<Quarantined> out) const {
  size_t count = 0;
  for (uint32_t segment = 0; segment < granules_.count(); ++segment) {
    if (!hand_over_->own().left_over(segment) || moved_[segment]) continue;
    const OwnFiles::SlotSet& users = hand_over_->own().users(segment);
    for (uint32_t slot = 0; slot < slot_count && count < out.size(); ++slot) {
      if (OwnFiles::among(users, slot)) out[count++] = quarantined(segment, slot);
    }
  }
  return count;
}

// A device that only checks the record releases it within microseconds.
size_t Segments::quarantined(std::span<Quarantined> out) {
  if (!slots_.owned()) return 0;
  size_t count = hand_over_ != nullptr ? left_over(out) : 0;
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    granules_.for_each_hold(slot, [&](uint32_t held) {
      if (held == 0 || held > granules_.count() || count == out.size()) return;
      const SegmentRecord& record = granules_.record(held - 1);
      const bool closed = !is_open(record.epoch.load(std::memory_order_acquire));
      if (!closed || record.granules.load(std::memory_order_relaxed) == 0) return;
      if (slots_.inhabited(slot)) out[count++] = quarantined(held - 1, slot);
    });
  }
  return count;
}

}  // namespace urma::drivers::cxl
