// SPDX-License-Identifier: Apache-2.0
#include "jetty/staging.h"

#include <algorithm>

#include "base/accelerator_memory.h"
#include "base/copy.h"
#include "jetty/slicer.h"

namespace urma::jetty {

bool Staging::prepare(std::span<const std::byte> memory) {
  if (!guard_.open(memory)) return false;
  if (slots_.data() == nullptr) slots_ = Region::try_make(most * slice_bytes, page_bytes);
  if (slots_.data() == nullptr) return false;
  if (AcceleratorMemory::has(memory.data())) guard_.pin({slots_.data(), pinned_bytes});
  return true;
}

// Returns this many vacant slots that lie behind each other, or null.
std::byte* Staging::next_slots(uint32_t count) {
  const uint32_t next = (first_ + count_) % most;
  if (count_ + count > most || next + count > most || slots_.data() == nullptr) return nullptr;
  return slots_.data() + size_t{next} * slice_bytes;
}

void Staging::take_slots(uint32_t count) {
  for (; count > 0; --count) {
    fills_[(first_ + count_) % most] = fill_;
    ++count_;
  }
  ahead_ = {};
}

const std::byte* Staging::copy(const std::byte* from, uint32_t bytes, uint32_t more) {
  if (from == ahead_.from && bytes <= ahead_.bytes) {
    const std::byte* const copied = ahead_.copy;
    ahead_ = {from + bytes, copied + bytes, ahead_.bytes - bytes};
    return copied;
  }
  const bool slow = more > 0 && AcceleratorMemory::has(from);
  uint32_t all = slow ? std::min(bytes + more, most_ahead) : bytes;
  uint32_t slots = (all + slice_bytes - 1) / slice_bytes;
  // Frames need slots, too.
  if (slots > 1 && (!room_for(most / 2) || next_slots(slots) == nullptr)) {
    all = std::min(all, slice_bytes);
    slots = 1;
  }
  std::byte* const to = next_slots(slots);
  if (to == nullptr) return nullptr;
  if (!guard_.copy(to, from, all)) return nullptr;
  take_slots(slots);
  if (all > bytes) ahead_ = {from + bytes, to + bytes, all - bytes};
  return to;
}

const std::byte* Staging::copy(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes,
                               uint32_t more) {
  if (pieces.size() == 1) return copy(pieces[0].data + offset, bytes, more);
  std::byte* const to = next_slots(1);
  if (to == nullptr || !copy_out(pieces, offset, {to, bytes})) return nullptr;
  take_slots(1);
  return to;
}

bool Staging::copy_out(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out) {
  std::byte* to = out.data();
  bool all = true;
  for_parts(pieces, offset, out.size(), [&](const std::byte* data, uint32_t here) {
    if (!AcceleratorMemory::has(data)) {
      copy_bytes(to, data, here);
    } else {
      all = all && guard_.copy(to, data, here);
    }
    to += here;
  });
  return all;
}

bool Staging::scatter(std::span<const Piece> pieces, uint32_t offset,
                      std::span<const std::byte> data, uint64_t owner) {
  const std::byte* from = data.data();
  bool all = true;
  for_parts(pieces, offset, data.size(), [&](const std::byte* piece, uint32_t here) {
    auto* const to = const_cast<std::byte*>(piece);
    if (!AcceleratorMemory::has(to)) {
      copy_bytes(to, from, here);
    } else {
      all = all && guard_.copy(to, from, here, owner);
    }
    from += here;
  });
  return all;
}

}  // namespace urma::jetty
