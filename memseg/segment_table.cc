#include "memseg/segment_table.h"

#include <algorithm>

#include "urma/base/assert.h"

namespace urma::memseg {

SegmentTable::SegmentTable(uint32_t capacity)
    : entries_(std::min(capacity, id_limit)), freed_(entries_.size()) {}

uint32_t SegmentTable::take_id() {
  // Identifiers never used come first: the longer a freed one rests, the better.
  if (touched_ < entries_.size()) return touched_++;
  URMA_ASSERT(freed_count_ > 0, "a table that is not full has a free identifier");
  const uint32_t id = freed_[freed_head_];
  freed_head_ = static_cast<uint32_t>((freed_head_ + 1) % freed_.size());
  --freed_count_;
  return id;
}

bool SegmentTable::add(const Segment& segment, TokenId& id) {
  if (size_ == entries_.size()) return false;
  const uint32_t index = take_id();
  entries_[index] = {segment, true};
  ++size_;
  id = TokenId(index);
  return true;
}

bool SegmentTable::remove(TokenId id) {
  if (number(id) >= entries_.size() || !entries_[number(id)].used) return false;
  entries_[number(id)] = {};
  freed_[(freed_head_ + freed_count_) % freed_.size()] = number(id);
  ++freed_count_;
  --size_;
  return true;
}

void SegmentTable::clear() {
  for (uint32_t id = 0; id < touched_; ++id) remove(TokenId(id));
}

std::byte* SegmentTable::check(TokenId id, TokenValue token, uint64_t address, uint64_t bytes,
                               Rights wanted) const {
  if (number(id) >= entries_.size()) return nullptr;
  const Entry& entry = entries_[number(id)];
  if (!entry.used || !has(entry.segment.rights, wanted)) return nullptr;
  // The comparison of two words takes the same time whichever bits differ.
  if ((number(entry.segment.token) ^ number(token)) != 0) return nullptr;
  const Segment& segment = entry.segment;
  if (!within(segment.address, segment.bytes, address, bytes)) return nullptr;
  return segment.base + (address - segment.address);
}

bool SegmentTable::names(TokenId id, TokenValue token) const {
  if (number(id) >= entries_.size() || !entries_[number(id)].used) return false;
  return (number(entries_[number(id)].segment.token) ^ number(token)) == 0;
}

}  // namespace urma::memseg
