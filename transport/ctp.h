#pragma once

#include <utility>

#include "transport/packet_channel.h"

namespace urma::transport {

// One channel over a medium that loses nothing and keeps the order (CTP, UB 6.2; UB 4.1.2): a slice
// is one packet, nothing is acknowledged or repeated, and no number is on the wire. What a peer has
// taken is its sign of life; what it has no room for waits here. That something was taken is no
// progress of the work that it belongs to: an answer is. Silence ends no channel, for the medium
// says who lives: it only ends that more is asked.
class Ctp final : public PacketChannel {
 public:
  struct Upwards {
    PacketSink& sink;  // is told of answers that have left: they have arrived
    Ways& ways;
  };
  Ctp(uint32_t index, const ChannelEnds& ends, const Upwards& upwards, Pools& pools,
      Counters& counters, Time now);

  // Nothing is pulled meanwhile.
  void pause(bool paused) { paused_ = paused; }
  // Something of the peer's has come. True: it had been silent.
  bool handle_packet(Time now) {
    if (now - last_heard_ > hearing_grain || !heard_) hear(now);
    return std::exchange(silent_, false);
  }

  // The medium numbers nothing: each packet that comes is a slice of its own.
  uint32_t name_slice() { return ++slices_; }

  // Channel
  std::byte* begin(uint32_t bytes) override;
  void end() override;
  std::byte* hold(const MemoryRange& range) override;
  bool let_go() override { return ways_.let_go(); }
  bool silent() const override { return silent_; }
  bool acknowledges() const override { return false; }

  // PacketChannel
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) override;
  bool wants_to_send(Time now) const override;
  Time next_deadline() const override;
  [[gnu::cold]] std::optional<Why> handle_timer(Time now) override;
  Duration rtt() const override { return std::chrono::microseconds(1); }

 private:
  // As exact as silence is measured: most packets write nothing.
  static constexpr Duration hearing_grain = std::chrono::milliseconds(1);

  bool outstanding() const override { return watching_ || awaited_ > 0; }
  struct Pulled {
    size_t count = 0;
    uint64_t answers = 0;  // a bit for each slot of the burst
  };
  Pulled pull(std::span<TxFrame* const> frames, Time now);
  bool begin_packet(TxFrame& frame, uint32_t bytes);
  void watch(Time now);
  void watch_soon();
  void note_room(bool full, Time now);

  PacketSink& sink_;
  Ways& ways_;
  const uint32_t way_;
  bool watching_ = false;  // what was sent may not all have been taken
  bool to_watch_ = false;  // from the next `fill` on
  bool blocked_ = false;   // there was no room
  bool paused_ = false;
  bool silent_ = false;
  Time blocked_since_{};
  Time retry_at_{};
  Time looked_at_{};  // at what the peer has taken
  uint64_t taken_ = 0;
  uint32_t slices_ = 0;  // that have come
};

}  // namespace urma::transport
