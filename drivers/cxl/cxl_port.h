// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/cxl/arrivals.h"
#include "drivers/cxl/departures.h"
#include "drivers/cxl/lanes.h"
#include "drivers/cxl/window.h"
#include "drivers/frame_pool.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// A device in a window: sends into the rings of the pairs that it is part of (Departures), and
// receives from them (Arrivals). Looks up which rings are its own whenever a slot or ring has
// changed its owner. Frames are received where they lie: the ring is not written over before they
// are released. Owns the window. Only the thread that runs the engine calls it, except for `open`
// and the destructor.
class CxlPort final : public PacketPort, public Ways {
 public:
  static Result<std::unique_ptr<PacketPort>> open(const WindowSettings& settings);
  ~CxlPort() override;

  Result<std::unique_ptr<PacketPort>> beside(const Eid&) override;
  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  // Frames that were taken have been copied.
  uint64_t settled() override { return sent_; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override { arrivals_.release(frames); }
  std::span<const int> descriptors() const override { return {}; }
  Bell* bell() override { return &bell_; }
  Ways* ways() override { return this; }
  // Returns null where memory is not coherent. There a copy is not enough: if the owner has stored
  // to a line and not written it back yet, the later write-back would overwrite the copy.
  SegmentMemory* memory() override {
    const bool mapped = words_.coherent() && words_.parts().granules > 0;
    return mapped ? &window_->segments() : nullptr;
  }
  Time next_arrival() const override {
    const Time asked = window_->hand_over() != nullptr ? window_->hand_over()->due() : never;
    return std::min(asked, lanes_.due());
  }
  void abandon() override;

  // Ways: the number of a way is that of the slot it leads to.
  uint32_t way_to(const Endpoint& endpoint) const override { return slot_of(endpoint); }
  bool reserve(uint32_t slot, uint32_t bytes) override;
  std::byte* begin(uint32_t slot, uint32_t bytes) override;
  void end() override { departures_.end(); }
  void notify() override { departures_.notify(); }
  const NextLine* next_line(uint32_t slot) const override {
    return slot == no_slot ? nullptr : departures_.next_line(slot);
  }
  void sent_line(uint32_t slot, uint32_t bytes) override { departures_.sent_line(slot, bytes); }
  std::byte* hold(uint32_t slot, const MemoryRange& range, PreparedSegment& prepared) override {
    // The rings belong to one incarnation of the slot's device.
    if (slot >= slot_count || !departures_.lead_to(slot)) return nullptr;
    return window_->holder().hold(slot, departures_.generation(slot), range, prepared);
  }
  bool let_go() override { return window_->holder().let_go(); }
  Laned open_lane(uint32_t slot, const MemoryRange& range, MappedLane& lane) override;
  void close_lane(const MappedLane& lane) override { lanes_.close(lane); }
  State state(uint32_t slot) override;

 private:
  static constexpr uint32_t frame_count = 256;

  CxlPort(std::unique_ptr<Window> window, uint32_t slot, const WindowSettings& settings);

  uint32_t slot_of(const Endpoint& endpoint) const;  // `no_slot`: not of this window
  [[gnu::cold]] bool connect(uint32_t slot);
  [[gnu::cold]] void look_around();
  void look_at(uint32_t ring, const RingOwner& owner);
  uint64_t changes() const { return words_.seen(changes_); }

  const WindowSettings settings_;  // as this port was opened, for `beside`
  std::unique_ptr<Window> window_;
  const Mapping& mapping_;
  const SharedWords& words_;
  HandedOver* const handed_over_;  // null where segments lie in the window
  const std::atomic<uint64_t>& changes_;
  const uint32_t slot_;
  const uint32_t generation_;
  Bell bell_;
  PortFacts facts_;
  PortCounters counters_;
  uint64_t sent_ = 0;
  uint64_t changes_seen_ = 0;
  uint32_t no_room_for_ = no_slot;  // the slot that was asked for last, if there was no room
  FramePool pool_{frame_count};
  Departures departures_;
  Arrivals arrivals_;
  Lanes lanes_;
};

}  // namespace urma::drivers::cxl
