// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/prng.h"
#include "drivers/device_string.h"
#include "urma/core/time.h"
#include "wire/frame.h"

namespace urma::drivers {

// Losses, delays, damage and marks of packets on their way. Fractions are probabilities for each
// packet.
struct Impairment {
  // The packets that can be lost. `first` and `last` mean the first or last packet of a slice, when
  // it is sent for the first time, so that retransmissions are not lost.
  enum class Only : uint8_t { all, data, acks, first, last };

  double loss = 0;       // lost
  double duplicate = 0;  // arrives twice
  double corrupt = 0;    // 1 to 64 bits are flipped; in half of the cases at most 4
  double reorder = 0;    // delayed by `reorder_by`
  Duration delay{};      // of every packet
  Duration jitter{};     // additional delay, uniformly distributed from 0 to this
  Duration reorder_by = std::chrono::microseconds(100);
  Only only = Only::all;
  double burst = 0;            // a burst of losses begins (Gilbert's model)
  uint64_t burst_length = 10;  // packets in a burst, on average
  double replay = 0;           // another copy arrives `replay_by` later
  Duration replay_by = std::chrono::milliseconds(5);
  Duration hole_after{};             // the time after the first packet when all packets are lost,
  Duration hole_for{};               // for this long; 0: never
  uint64_t bits_per_second = 0;      // the rate of the line; 0: unlimited
  uint64_t queue_bytes = 256 << 10;  // the most bytes that wait for the line; further ones are lost
  uint64_t mark_bytes = 0;  // packets behind more waiting bytes are marked, if ECN allows; 0: none

  bool none() const {
    return loss == 0 && duplicate == 0 && corrupt == 0 && reorder == 0 && delay == Duration{} &&
           jitter == Duration{} && burst == 0 && replay == 0 && hole_for == Duration{} &&
           bits_per_second == 0;
  }
  bool reorders() const { return reorder > 0 || jitter > Duration{}; }
  void read_options(OptionReader& options, const std::string& prefix = "");

  // The result for one packet: no copy, or up to three.
  struct Copy {
    Duration delay{};
    bool corrupt = false;
  };
  struct Fate {
    std::array<Copy, 3> copies;
    size_t count = 0;
    bool marked = false;

    // Returns the ECN field with which the copies of a packet arrive.
    Ecn arriving(Ecn sent) const { return marked ? urma::marked(sent) : sent; }
  };
  Duration lateness(Prng& prng) const {
    if (jitter == Duration{}) return delay;
    return delay +
           Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(jitter.count()))));
  }
  // Draws the fate of a packet, without burst, hole and rate. `exempt`: it is not lost.
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
    // The steps are forward, and in sum at most one round, so that no bit is flipped twice.
    uint64_t bit = prng.below(bits);
    for (uint64_t flip = 0; flip < flips; ++flip) {
      packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      bit = (bit + prng.between(1, bits / flips)) % bits;
    }
  }
};

// The state of one direction of a port under an impairment: whether a burst is in progress, until
// when the line is busy, and which packets were sent before.
class ImpairedLine {
 public:
  // Decides the fate of a packet. `packet` is its beginning, at least the transport header; `bytes`
  // is its length.
  Impairment::Fate decide(const Impairment& impairment, std::span<const std::byte> packet,
                          uint64_t bytes, Time now, Prng& prng);

 private:
  // The highest packet of a channel that was sent, and its slice. If two channels share an entry,
  // Only::first and Only::last miss some packets.
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
