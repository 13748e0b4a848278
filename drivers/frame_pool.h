// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/copy.h"
#include "base/region.h"
#include "wire/frame.h"

namespace urma::drivers {

// The transmit frames of a driver, with their head room, in ordinary memory. It knows which frames
// are free, not what the others contain. All memory is reserved at construction, and touched as far
// as frames are lent at a time. The port owns it; used by one thread at a time.
class FramePool {
 public:
  explicit FramePool(uint32_t frames)
      : frames_(frames), heads_(size_t{frames} * TxFrame::head_room), free_(frames) {}

  size_t lend(std::span<TxFrame*> out) {
    size_t lent = 0;
    while (lent < out.size() && count_ > 0) out[lent++] = free_[--count_];
    while (lent < out.size() && made_ < size()) out[lent++] = make();
    return lent;
  }
  void take_back(TxFrame* frame) { free_[count_++] = frame; }
  uint32_t free() const { return count_ + size() - made_; }
  uint32_t size() const { return static_cast<uint32_t>(frames_.size()); }

 private:
  TxFrame* make() {
    TxFrame& frame = frames_[made_];
    frame.head = heads_.data() + size_t{made_++} * TxFrame::head_room;
    return &frame;
  }

  RegionArray<TxFrame> frames_;
  Region heads_;
  RegionArray<TxFrame*> free_;  // those that were lent before, the latest last
  uint32_t count_ = 0;          // of them
  uint32_t made_ = 0;           // frames that were ever lent: the first ones
};

// Returns the beginning of the packet, which contains its transport header.
inline std::span<const std::byte> beginning_of(const TxFrame& frame) {
  if (frame.head_bytes > 0) return {frame.head, frame.head_bytes};
  if (frame.piece_count > 0) return {frame.pieces[0].data, frame.pieces[0].bytes};
  return {};
}

// Copies the packet without its head to `out`, which has room for it. Returns the end of the copy.
inline std::byte* copy_rest(const TxFrame& frame, std::byte* out) {
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    copy_bytes(out, frame.pieces[i].data, frame.pieces[i].bytes);
    out += frame.pieces[i].bytes;
  }
  copy_bytes(out, frame.tail.data(), frame.tail_bytes);
  return out + frame.tail_bytes;
}

// Copies the whole packet to `out`, which has room for frame.bytes().
inline void flatten(const TxFrame& frame, std::byte* out) {
  copy_bytes(out, frame.head, frame.head_bytes);
  copy_rest(frame, out + frame.head_bytes);
}

}  // namespace urma::drivers
