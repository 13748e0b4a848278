// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "base/guarded_copy.h"
#include "base/region.h"
#include "jetty/flow.h"
#include "wire/frame.h"

namespace urma::jetty {

// Copies of data that a frame cannot refer to where it lies: in guarded memory, which may not be
// mapped, or in memory of an accelerator. The driver, and the code that computes the ICRC, read the
// bytes that a frame refers to until it has settled, so copies are kept until then. Only the thread
// that runs the engine calls it.
class Staging {
 public:
  // `guard` copies; it must outlive this object.
  explicit Staging(GuardedCopy& guard) : guard_(guard) {}
  Staging(const Staging&) = delete;
  ~Staging() { guard_.unpin(); }

  // Call it before data of this memory is copied; may be repeated. Returns false if the address
  // space is exhausted, or if the memory cannot be copied.
  bool prepare(std::span<const std::byte> memory);

  // Copies that are made from now on belong to this fill, and are kept until it has settled.
  void begin_fill(uint64_t fill) { fill_ = fill; }
  // Copies that are made until the next fill begins are for packets that are sent immediately.
  void end_fill() { ahead_ = {}; }
  void settled(uint64_t fill) {
    while (count_ > 0 && fills_[first_] <= fill) {
      first_ = (first_ + 1) % most;
      --count_;
    }
    if (count_ == 0) first_ = 0;  // use the same pages again
  }

  // Returns whether there is room for a fill of `packets` packets, and one more that is sent
  // immediately. If not, nothing is filled until copies have settled: a device with several ports
  // may keep more frames than there can be copies.
  bool room_for(size_t packets) const { return count_ + packets < most; }
  // Copies at most slice_bytes. Returns null if the memory is not accessible, or there is no room.
  // `more`: how many bytes behind them will probably be asked for next in this fill. Of memory of
  // an accelerator up to most_ahead are copied together, because each of its copies takes long.
  const std::byte* copy(const std::byte* from, uint32_t bytes, uint32_t more = 0);
  // The same for bytes of `pieces`, from `offset` on.
  const std::byte* copy(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes,
                        uint32_t more);
  // The latest copy is in no frame and is not needed any more.
  void give_back_last() {
    --count_;
    ahead_ = {};
  }

  // ---- works whose buffers lie in memory of an accelerator, at least in part

  // Copies as many bytes of `pieces`, from `offset` on, as `out` holds. Returns false if that is
  // not possible.
  bool copy_out(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out);
  // Copies `data`, of at most slice_bytes, to `pieces`, from `offset` on. Returns false if that is
  // not possible. It may only be begun, until `finish` is called for the same owner.
  bool scatter(std::span<const Piece> pieces, uint32_t offset, std::span<const std::byte> data,
               uint64_t owner);
  // Waits for what was begun. Returns false if something of this owner was not copied.
  bool finish(uint64_t owner) { return guard_.finish(owner); }
  // Returns a number for an owner of copies, which is never used again.
  uint64_t next_owner() { return next_owner_++; }
  // Waits for what was begun. If something is not copied, `finish` will say so.
  void settle() { guard_.settle(); }

 private:
  // About as many as a driver has frames. The copies occupy address space, of which little is used.
  static constexpr uint32_t most = 1024;
  // The slots that are used first, and pinned for accelerators.
  static constexpr size_t pinned_bytes = 256 * slice_bytes;
  static constexpr uint32_t most_ahead = 4 * slice_bytes;

  // The part of the latest copy that was not asked for yet.
  struct Ahead {
    const std::byte* from = nullptr;  // where that begins
    const std::byte* copy = nullptr;
    uint32_t bytes = 0;
  };

  std::byte* next_slots(uint32_t count);
  void take_slots(uint32_t count);

  GuardedCopy& guard_;
  Region slots_;
  std::array<uint64_t, most> fills_{};  // the fill of each copy
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint64_t fill_ = 0;
  Ahead ahead_;
  uint64_t next_owner_ = 1;
};

}  // namespace urma::jetty
