// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "drivers/sim/network.h"

namespace urma::drivers::sim {

// A port under the time of a simulated network. The inner port carries the frames; the network
// decides when the engine of a rung port runs. It watches the bell of the inner port. A port
// without one, which can only be polled, counts as rung when a polled port of this network has
// sent.
class ClockedPort final : public PacketPort, public Ways {
 public:
  // Returns whether a port can be the inner one: it has a bell, or can only be polled.
  static bool fits(PacketPort& port);
  // `inner` must fit.
  ClockedPort(std::shared_ptr<Network> network, std::unique_ptr<PacketPort> inner,
              const SettingList& options);
  ~ClockedPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return inner_->counters(); }
  size_t metrics(std::span<uint64_t> out) override { return inner_->metrics(out); }
  size_t lend(std::span<TxFrame*> frames) override { return inner_->lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override { inner_->unlend(frames); }
  uint64_t settled() override { return dead_ ? taken_ : inner_->settled(); }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return {}; }
  SegmentMemory* memory() override { return inner_->memory(); }
  DeviceReads* device_reads() override { return inner_->device_reads(); }
  bool only_packets() const override { return true; }
  Ways* ways() override { return ways_ != nullptr ? this : nullptr; }
  Time next_arrival() const override { return dead_ ? never : inner_->next_arrival(); }
  VirtualClock* clock() override { return network_.get(); }
  void abandon() override;

  // Ways. After `abandon`, there is room for everything, and nothing is sent, so that the engine of
  // a killed process comes to its end.
  uint32_t way_to(const Endpoint& endpoint) const override { return ways_->way_to(endpoint); }
  bool reserve(uint32_t way, uint32_t bytes) override {
    return dead_ || ways_->reserve(way, bytes);
  }
  std::byte* begin(uint32_t way, uint32_t bytes) override {
    return dead_ ? nullptr : ways_->begin(way, bytes);
  }
  void end() override { ways_->end(); }
  const NextLine* next_line(uint32_t way) const override { return ways_->next_line(way); }
  void sent_line(uint32_t way, uint32_t bytes) override { ways_->sent_line(way, bytes); }
  std::byte* hold(uint32_t way, const MemoryRange& range, PreparedSegment& prepared) override {
    return dead_ ? nullptr : ways_->hold(way, range, prepared);
  }
  bool let_go() override { return ways_->let_go(); }
  Laned open_lane(uint32_t way, const MemoryRange& range, MappedLane& lane) override {
    return dead_ ? Laned::gone : ways_->open_lane(way, range, lane);
  }
  void close_lane(const MappedLane& lane) override { ways_->close_lane(lane); }
  void notify() override {
    if (!dead_) ways_->notify();
  }
  State state(uint32_t way) override { return dead_ ? State{.gone = true} : ways_->state(way); }

 private:
  friend class Network;

  // Returns true once for each ring.
  bool was_rung();
  void ring_after_sending();
  size_t lose(std::span<RxFrame> frames);

  std::shared_ptr<Network> network_;
  std::unique_ptr<PacketPort> inner_;
  PortFacts facts_;
  Ways* ways_;
  std::optional<Bell> bell_;  // empty if the inner port can only be polled
  bool rung_ = false;         // what a bell would say
  uint64_t sent_ = 0;         // what the inner port had sent when it last rang
  uint64_t taken_ = 0;
  uint32_t index_ = 0;
  bool dead_ = false;
  bool heard_ = false;  // whether was_rung has reported the present ring
};

}  // namespace urma::drivers::sim
