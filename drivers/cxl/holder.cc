// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/holder.h"

namespace urma::drivers::cxl {
namespace {

// Both values are compared in full, so that the time taken reveals nothing about them.
bool opens(const SegmentRecord& record, TokenValue token) {
  const uint32_t newer = record.token.load(std::memory_order_relaxed) ^ number(token);
  const uint32_t older = record.older_token.load(std::memory_order_relaxed) ^ number(token);
  const uint32_t unchecked = record.unchecked.load(std::memory_order_relaxed);
  return (static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0) | unchecked) != 0;
}

}  // namespace

Holder::Found Holder::allowed(uint32_t segment, uint32_t slot, uint32_t generation,
                              const MemoryRange& range) {
  const SegmentRecord& record = segments_[segment];
  Found found{.epoch = record.epoch.load(std::memory_order_acquire), .segment = segment};
  if (!is_open(found.epoch)) return found;
  const uint64_t offset = offset_in_segment(range);
  const uint64_t bytes = record.bytes.load(std::memory_order_relaxed);
  // Whatever the record says, nothing outside of the window's segments is used.
  const uint64_t most = (granules_ - segment) * mapping_.words().parts().granule_bytes;
  const uint32_t owner = record.owner.load(std::memory_order_relaxed);
  const uint32_t owner_generation = record.owner_generation.load(std::memory_order_relaxed);
  const bool theirs = (owner == slot && owner_generation == generation) ||
                      are_siblings(owner, owner_generation, slot);
  const bool known = record.token_id.load(std::memory_order_relaxed) == number(range.id) &&
                     (handed_over_ != nullptr || opens(record, range.token));
  const bool by_processors = record.atomics.load(std::memory_order_relaxed) ==
                             static_cast<uint32_t>(AtomicDomain::processor);
  const auto rights =
      static_cast<Rights>(record.rights.load(std::memory_order_relaxed) &
                          (by_processors ? UINT32_MAX : ~static_cast<uint32_t>(Rights::atomic)));
  if (!theirs || !known || !has(rights, range.wanted)) return found;
  if (offset > bytes || range.bytes > bytes - offset) return found;
  const uint32_t file = record.file.load(std::memory_order_relaxed);
  if (handed_over_ != nullptr) {
    const bool checked = record.unchecked.load(std::memory_order_relaxed) == 0;
    found.at = handed_over_->find({segment, {slot, generation, file}, found.epoch, bytes, checked},
                                  range, offset);
  } else if (bytes <= most && file == 0) {
    found.at = mapping_.words().memory_of(segment) + offset;
    found.bytes = bytes;
    found.rights = rights;
  }
  return found;
}

bool Holder::are_siblings(uint32_t owner, uint32_t owner_generation, uint32_t slot) const {
  if (owner >= slot_count || owner == slot) return false;
  const SlotRecord& one = mapping_.words().slot(owner).record;
  const SlotRecord& other = mapping_.words().slot(slot).record;
  return one.generation.load(std::memory_order_relaxed) == owner_generation &&
         one.first.load(std::memory_order_relaxed) == other.first.load(std::memory_order_relaxed) &&
         one.first_generation.load(std::memory_order_relaxed) ==
             other.first_generation.load(std::memory_order_relaxed);
}

MappedLane Holder::lane_to(const Found& found, uint32_t slot, uint32_t generation) const {
  const SharedWords& words = mapping_.words();
  return {.base = found.at,
          .bytes = found.bytes,
          .rights = found.rights,
          .epoch = &segments_[found.segment].epoch,
          .opened = found.epoch,
          .owner = &words.slot(slot).record.generation,
          .generation = generation,
          .own = &words.slot(slots_.own()).record.generation,
          .own_generation = slots_.own_generation(),
          .fences = &words.changes().fences,
          .name = found.segment + 1};
}

PreparedSegment Holder::prepare(const Found& found, uint32_t slot, uint32_t generation,
                                const MemoryRange& range) const {
  const uint64_t offset = offset_in_segment(range);
  PreparedSegment out{.lane = lane_to(found, slot, generation),
                      .address = range.address - offset,
                      .id = range.id,
                      .token = range.token};
  out.lane.base -= offset;
  out.lane.hold = &slots_.own_hold()->segment;
  return out;
}

}  // namespace urma::drivers::cxl
