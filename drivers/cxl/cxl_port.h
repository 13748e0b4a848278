#pragma once

#include <array>
#include <memory>
#include <vector>

#include "drivers/cxl/ring.h"
#include "drivers/cxl/window.h"
#include "drivers/driver.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::cxl {

// A place in a window, and the rings to and from others that live there. Frames are received where
// they lie: the ring is not written over before they are released.
class CxlPort final : public PacketPort, public Ways {
 public:
  static Result<std::unique_ptr<PacketPort>> open(const WindowSettings& settings);
  ~CxlPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  // What was taken has been copied.
  uint64_t settled() override { return sent_; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return {}; }
  Bell* bell() override { return &bell_; }
  Ways* ways() override { return this; }
  // Where memory is not coherent a copy is not enough: the line that its owner has stored in and
  // not written back would go over it one day.
  SegmentMemory* memory() override {
    return window_.coherent() && window_.parts().granules > 0 ? &window_ : nullptr;
  }
  Time next_arrival() const override { return window_.next_look(); }
  void abandon() override { window_.abandon(); }

  // Ways: each place is one.
  uint32_t way_to(const Endpoint& endpoint) const override { return place_of(endpoint); }
  bool reserve(uint32_t place, uint32_t bytes) override;
  std::byte* begin(uint32_t place, uint32_t bytes) override;
  void end() override;
  void notify() override;
  std::byte* hold(uint32_t place, const MemoryRange& range) override {
    // Of the life that its rings are with.
    if (place >= places || !outbound_[place].ring) return nullptr;
    return window_.hold(place, outbound_[place].to_generation, range);
  }
  bool let_go() override { return window_.let_go(); }
  State state(uint32_t place) override;

 private:
  static constexpr uint32_t frame_count = 256;
  static constexpr uint32_t none = UINT32_MAX;
  // Of one `receive`: what is read is given back before more is, so that its writer goes on.
  static constexpr uint32_t bytes_at_once = 32 * 1024;
  static constexpr uint32_t rings_at_once = 16;
  static constexpr uint32_t most_inbound = 2 * places;

  // To one place.
  struct Outbound {
    RingWriter ring;
    uint32_t index = none;
    uint32_t serial = 0;
    uint32_t to_generation = 0;
    uint32_t rung = 0;     // Bell::ring
    bool touched = false;  // written to since the last `notify`
  };
  // From one life at a place.
  struct Inbound {
    RingReader ring;
    uint32_t index = none;  // none: not in use
    uint32_t serial = 0;
    uint32_t from_generation = 0;
    uint32_t held = 0;     // messages that are not released
    bool ended = false;    // its sender is gone: what it left is read, then the ring let go
    bool counted = false;  // that it is broken
    Endpoint from;
  };

  CxlPort(Window window, uint32_t place, const WindowSettings& settings);
  void state_settings(const WindowSettings& settings);

  uint32_t place_of(const Endpoint& endpoint) const;  // `places`: of another window, or none
  [[gnu::cold]] bool connect(uint32_t place);
  void touch(uint32_t place);
  bool read_from(Inbound& inbound, std::span<RxFrame> frames, size_t& count, uint32_t& bytes);
  [[gnu::cold]] void look_around();
  void look_at(uint32_t ring, const Window::Ownership& owner);
  void add_inbound(uint32_t ring, const Window::Ownership& owner);
  bool ended(const Window::Ownership& owner) const {
    return window_.generation(owner.from) != owner.from_generation;
  }
  bool may_add(uint32_t ring, const Window::Ownership& owner);
  void let_go(Outbound& outbound);
  void let_go(Inbound& inbound);
  void mark_let_go(uint32_t ring, uint32_t serial, std::atomic<uint32_t>& mark) const;
  void forget(Inbound& inbound);

  Window window_;
  const uint32_t place_;
  const uint32_t generation_;
  Bell bell_;
  PortFacts facts_;
  PortCounters counters_;
  uint64_t sent_ = 0;
  uint64_t changes_seen_ = 0;
  uint32_t no_room_for_ = places;  // a place that was asked for last, if there was no room
  FramePool pool_{frame_count};
  std::unique_ptr<Outbound[]> outbound_;     // by place
  RegionArray<MarkedLines> marked_{places};  // likewise; memory where it is used
  std::unique_ptr<Inbound[]> inbound_;       // most_inbound
  std::array<uint32_t, places> touched_;
  uint32_t touched_count_ = 0;
  uint32_t begun_ = 0;             // place
  std::vector<uint32_t> sources_;  // those in use; never grows beyond its room
  size_t latest_ = 0;              // of them, where something came from last
  size_t next_look_ = 0;
};

}  // namespace urma::drivers::cxl
