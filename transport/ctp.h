// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "transport/packet_channel.h"

namespace urma::transport {

// One channel over a medium that loses nothing and keeps the order (CTP, UB 6.2; UB 4.1.2): a slice
// is one packet, packets are neither numbered nor acknowledged nor retransmitted. A peer that takes
// packets is alive; slices that it has no room for wait here. A packet that was taken is not
// progress of its work: an answer is. A silent peer keeps its channel, since the medium shows
// whether its process lives; but no more slices are offered. Only the thread that runs the engine
// calls it.
class Ctp final : public PacketChannel {
 public:
  struct Upwards {
    PacketSink& sink;  // answers that leave are reported as delivered: they arrive
    Ways& ways;
  };
  Ctp(uint32_t index, const ChannelEnds& ends, const Upwards& upwards, Pools& pools,
      Counters& counters, Time now);

  // While the channel is paused, no slice is pulled.
  void pause(bool paused) {
    paused_ = paused;
    watched_ = watching_ && !paused_;
  }
  // A packet of the peer has come. Returns true if the peer was silent before.
  bool handle_packet(Time now) {
    if (now - last_heard_ > hearing_grain || !heard_) hear(now);
    return std::exchange(silent_, false);
  }

  // Returns a number for a received slice. Packets have none, and each is a slice of its own.
  uint32_t name_slice() { return ++slices_; }

  // Channel
  bool writes_at_once() const override { return true; }
  std::byte* begin(uint32_t bytes) override;
  void end() override;
  std::byte* hold(const MemoryRange& range, PreparedSegment& prepared) override;
  bool let_go() override { return ways_.let_go(); }
  Laned open_lane(const MemoryRange& range, MappedLane& lane) override {
    return ways_.open_lane(way_, range, lane);
  }
  bool silent() const override { return silent_; }
  bool acknowledges() const override { return false; }

  // PacketChannel
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) override;
  bool wants_to_send(Time now) const override;
  Time next_deadline() const override;
  [[gnu::cold]] std::optional<Why> handle_timer(Time now) override;
  Duration rtt() const override { return std::chrono::microseconds(1); }
  size_t view(std::span<ChannelView> out, Time now) const override;

 private:
  // The resolution with which silence is measured; coarse, so that most packets write nothing.
  static constexpr Duration hearing_grain = std::chrono::milliseconds(1);

  bool may_begin() const {
    // A set-up packet that waits may be the ACCEPT of this channel, which must arrive first.
    return offered_.empty() && !paused_ && !blocked_ && !silent_ && !shared_.setup_waits;
  }
  bool outstanding() const override { return watching_ || awaited_ > 0; }
  struct Pulled {
    size_t count = 0;
    uint64_t answers = 0;  // a bit for each slot of the burst
  };
  Pulled pull(std::span<TxFrame* const> frames, Time now);
  bool begin_packet(TxFrame& frame, uint32_t bytes);
  void watch(Time now);
  void set_watching(bool watching) {
    watching_ = watching;
    watched_ = watching_ && !paused_;
  }
  void watch_soon();
  void note_room(bool full, Time now);

  PacketSink& sink_;
  Ways& ways_;
  const uint32_t way_;
  const NextLine* const line_;  // null if the medium has none
  bool watching_ = false;       // the peer may not have taken all that was sent
  bool to_watch_ = false;       // `watching_` is set by the next `fill`
  bool blocked_ = false;        // the way had no room
  bool paused_ = false;
  bool silent_ = false;
  Time blocked_since_{};
  Time retry_at_{};
  Time looked_at_{};      // when `taken_` was read
  uint64_t taken_ = 0;    // `Ways::State::taken` of the way
  uint32_t slices_ = 0;   // received
  uint32_t in_line_ = 0;  // bytes of the packet that was begun in the next line; else 0
};

}  // namespace urma::transport
