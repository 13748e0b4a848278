#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "drivers/device_string.h"
#include "urma/base/prng.h"
#include "urma/base/time.h"

namespace urma::drivers {

// What may happen to a packet on its way. Probabilities are per packet.
struct Impairment {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;  // one to four bits
  double reorder = 0;  // held back by `reorder_by`
  Duration delay{};    // of every packet
  Duration jitter{};   // more, uniform
  Duration reorder_by = std::chrono::microseconds(100);

  bool none() const {
    return loss == 0 && duplicate == 0 && corrupt == 0 && reorder == 0 && delay == Duration{} &&
           jitter == Duration{};
  }
  bool reorders() const { return reorder > 0 || jitter > Duration{}; }
  void read_options(OptionReader& options, const std::string& prefix = "") {
    options.fraction(prefix + "loss", loss, {"packets that are lost"});
    options.fraction(prefix + "dup", duplicate, {"packets that come twice"});
    options.fraction(prefix + "corrupt", corrupt,
                     {"packets of which one to four bits are flipped"});
    options.fraction(prefix + "reorder", reorder, {"packets that are held back by reorder_by"});
    options.duration(prefix + "delay", delay, {"of every packet"});
    options.duration(prefix + "jitter", jitter, {"more delay, at random up to this"});
    options.duration(prefix + "reorder_by", reorder_by, {"how long those are held back"});
  }

  // What becomes of one packet: none, one or two copies.
  struct Copy {
    Duration delay{};
    bool corrupt = false;
  };
  struct Fate {
    std::array<Copy, 2> copies;
    size_t count = 0;
  };
  Duration lateness(Prng& prng) const {
    if (jitter == Duration{}) return delay;
    return delay +
           Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(jitter.count()))));
  }
  Fate decide(Prng& prng) const {
    Fate fate;
    if (loss > 0 && prng.chance(loss)) return fate;
    fate.count = duplicate > 0 && prng.chance(duplicate) ? 2 : 1;
    for (Copy& copy : std::span(fate.copies).first(fate.count)) {
      copy.delay = lateness(prng);
      if (reorder > 0 && prng.chance(reorder)) copy.delay += reorder_by;
      copy.corrupt = corrupt > 0 && prng.chance(corrupt);
    }
    return fate;
  }

  static void flip_bits(std::span<std::byte> packet, Prng& prng) {
    // Forward by less than a third each time: no bit is hit twice.
    const uint64_t bits = packet.size() * 8;
    uint64_t bit = prng.below(bits);
    for (uint64_t flips = prng.between(1, 4); flips > 0; --flips) {
      packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      bit = (bit + prng.between(1, (bits - 1) / 3)) % bits;
    }
  }
};

}  // namespace urma::drivers
