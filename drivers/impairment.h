#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/prng.h"
#include "drivers/device_string.h"
#include "urma/core/time.h"

namespace urma::drivers {

// What may happen to a packet on its way. Probabilities are per packet.
struct Impairment {
  // Which packets are lost, if any: the first and the last of a slice are those of their first
  // sending, so that what is sent again gets through.
  enum class Only : uint8_t { all, data, acks, first, last };

  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;  // 1 to 64 bits, of half of them no more than 4
  double reorder = 0;  // held back by `reorder_by`
  Duration delay{};    // of every packet
  Duration jitter{};   // more, uniform
  Duration reorder_by = std::chrono::microseconds(100);
  Only only = Only::all;
  double burst = 0;            // chance that a burst of loss begins (Gilbert's model)
  uint64_t burst_length = 10;  // packets of it, on average
  double replay = 0;           // chance of one more copy, replay_by later
  Duration replay_by = std::chrono::milliseconds(5);
  Duration hole_after{};             // from the first packet on, then all are lost...
  Duration hole_for{};               // ...for so long; 0: none are
  uint64_t bits_per_second = 0;      // of the line; 0: any
  uint64_t queue_bytes = 256 << 10;  // what waits for it; more is lost

  bool none() const {
    return loss == 0 && duplicate == 0 && corrupt == 0 && reorder == 0 && delay == Duration{} &&
           jitter == Duration{} && burst == 0 && replay == 0 && hole_for == Duration{} &&
           bits_per_second == 0;
  }
  bool reorders() const { return reorder > 0 || jitter > Duration{}; }
  void read_options(OptionReader& options, const std::string& prefix = "");

  // What becomes of one packet: none, or up to three copies.
  struct Copy {
    Duration delay{};
    bool corrupt = false;
  };
  struct Fate {
    std::array<Copy, 3> copies;
    size_t count = 0;
  };
  Duration lateness(Prng& prng) const {
    if (jitter == Duration{}) return delay;
    return delay +
           Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(jitter.count()))));
  }
  // By chance alone. `exempt`: it is not lost.
  Fate decide(Prng& prng, bool exempt = false) const {
    Fate fate;
    if (loss > 0 && !exempt && prng.chance(loss)) return fate;
    fate.count = duplicate > 0 && prng.chance(duplicate) ? 2 : 1;
    for (Copy& copy : std::span(fate.copies).first(fate.count)) {
      copy.delay = lateness(prng);
      if (reorder > 0 && prng.chance(reorder)) copy.delay += reorder_by;
      copy.corrupt = corrupt > 0 && prng.chance(corrupt);
    }
    if (replay > 0 && prng.chance(replay)) {
      fate.copies[fate.count++] = {.delay = lateness(prng) + replay_by, .corrupt = false};
    }
    return fate;
  }

  static void flip_bits(std::span<std::byte> packet, Prng& prng) {
    const uint64_t bits = packet.size() * 8;
    const uint64_t flips = prng.between(1, prng.chance(0.5) ? 4 : std::min<uint64_t>(64, bits));
    // Forward, and not once around: no bit is hit twice.
    uint64_t bit = prng.below(bits);
    for (uint64_t flip = 0; flip < flips; ++flip) {
      packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      bit = (bit + prng.between(1, bits / flips)) % bits;
    }
  }
};

// One direction of a port under an impairment, and what must be remembered of it: whether a burst
// is on, how long the line is busy, which packets were sent before.
class ImpairedLine {
 public:
  // `packet`: its beginning, as much as a transport header has; `bytes`: all of it.
  Impairment::Fate decide(const Impairment& impairment, std::span<const std::byte> packet,
                          uint64_t bytes, Time now, Prng& prng);

 private:
  // The highest packet of a channel that was sent, and its slice. Two channels may share one: then
  // "first" and "last" miss some.
  struct Flow {
    uint32_t channel = 0;  // destination TPN
    uint32_t psn = 0;
    uint32_t slice = 0;
  };
  static constexpr size_t flows = 64;

  bool exempt(const Impairment& impairment, std::span<const std::byte> packet);
  bool in_hole(const Impairment& impairment, Time now);
  bool in_burst(const Impairment& impairment, Prng& prng);

  std::array<Flow, flows> flows_{};
  bool burst_ = false;
  bool begun_ = false;
  Time begun_at_{};
  Time busy_until_{};
};

}  // namespace urma::drivers
