// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "drivers/cxl/granules.h"
#include "drivers/cxl/hand_over.h"
#include "drivers/cxl/handed_over.h"
#include "drivers/cxl/slots.h"
#include "drivers/port_facts.h"
#include "drivers/segment_memory.h"

namespace urma::drivers::cxl {

// This device's segments in a window: grants and revokes them by their records, waits for holders,
// and moves a segment out of the window if a holder does not run. Granules knows where each segment
// lies, or OwnFiles if each segment is a file of its own. SegmentMemory says which threads may call
// what.
class Segments final : public SegmentMemory {
 public:
  // `hand_over`: null where segments lie in the window.
  Segments(Mapping& mapping, Slots& slots, HandOver* hand_over);

  Taken take(uint64_t bytes, Lease& lease) override;
  bool prepare(const Lease& lease) override;
  void grant(const Lease& lease, const Grant& grant) override;
  void revoke(const Lease& lease) override;
  void revoke_all() override;
  bool held(const Lease& lease) override;
  bool move(const Lease& lease) override;
  bool loose(const Lease& lease) const override {
    return hand_over_ != nullptr && hand_over_->own().handed_over(lease.number);
  }
  bool moved(const Lease& lease) const override { return moved_[lease.number]; }
  bool restore(const Lease& lease) override;
  void empty(const Lease& lease) override;
  void give_back(const Lease& lease) override;
  size_t quarantined(std::span<Quarantined> out) override;
  void set_judge(TokenJudge* judge) override {
    if (hand_over_ != nullptr) hand_over_->set_judge(judge);
  }
  MappedMemory mapped() const {
    return {granules_.at(0), mapping_.words().parts().granule_bytes, offset_bits,
            hand_over_ == nullptr};
  }
  // Returns null where segments lie in the window.
  HandedOver* handed_over() { return handed_over_ ? &*handed_over_ : nullptr; }

 private:
  uint64_t mapped_bytes(const Lease& lease) const {
    if (hand_over_ != nullptr) return hand_over_->own().bytes(lease.number);
    return granules_.whole_bytes(lease.bytes);
  }
  Quarantined quarantined(uint32_t segment, uint32_t slot) const;
  size_t left_over(std::span<Quarantined> out) const;

  Mapping& mapping_;
  Slots& slots_;
  HandOver* const hand_over_;
  Granules granules_;
  // For each segment, whether this device's own memory for it lies outside of the window now.
  // Written by the thread that ends the segment.
  std::unique_ptr<std::atomic<bool>[]> moved_;
  std::optional<HandedOver> handed_over_;
  bool closed_ =
      false;  // records since the last barrier, so holds of their segments may be invisible
};

}  // namespace urma::drivers::cxl
