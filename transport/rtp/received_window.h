// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/slab.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// The packet numbers that have arrived in one direction of a channel (UB 6.4.1); each is accepted
// once (UB 4.3.10). The window does not know what packets contain or when they must be
// acknowledged. It has a bitmap, taken from the pool of the device, only while it keeps packets out
// of order; if the pool is empty, such packets are rejected.
class ReceivedWindow {
 public:
  static constexpr uint32_t max_window = 2048;  // packets; far less than the 8M - 1 of UB 4.3.2
  struct Bitmap {
    std::array<uint64_t, max_window / 64> words{};  // bit PSN % max_window: the packet has arrived
  };
  using Pool = Slab<Bitmap>;

  // `window`: how many numbers are accepted from the expected one on; at most max_window. `keeps`:
  // whether packets that arrive out of order are kept (UB 4.4.2, UB 4.4.5).
  ReceivedWindow(Psn first, uint32_t window, bool keeps)
      : expected_(first), highest_(first - 1), window_(window), keeps_(keeps) {}

  enum class Arrival : uint8_t {
    fresh,      // to be handed to the layer above
    duplicate,  // it has arrived before
    invalid,    // neither in the window nor a duplicate: dropped silently
    no_memory,  // out of order, and there is no bitmap for it: treated as lost
    not_kept,   // out of order, and this window keeps none: treated as lost
  };
  Arrival receive(Psn psn, Pool& pool) {
    if (psn != expected_ || kept_ > 0) return receive_around_hole(psn, pool);
    highest_ = std::max(highest_, psn);
    ++expected_;
    return Arrival::fresh;
  }
  // Returns what `receive` would return, and changes nothing.
  Arrival classify(Psn psn, Pool& pool) const {
    return psn == expected_ ? Arrival::fresh : classify_other(psn, pool);
  }

  // Returns the lowest number that has not arrived (EPSN).
  Psn expected() const { return expected_; }
  // Returns the highest number that has arrived (MaxRcvPSN). It never falls, and includes packets
  // that could not be kept (UB 4.4.13).
  Psn highest() const { return highest_; }
  bool keeps() const { return keeps_; }
  bool has_hole() const { return kept_ > 0; }
  uint32_t kept_out_of_order() const { return kept_; }

  // Returns the state as a TPSACK reports it: a bitmap of at most `bits` bits that begins at PSN
  // expected() - 1.
  Saetph selective(uint32_t bits, Pool& pool) const;

  // Gives the bitmap back to the pool; the owner calls this before it destroys the window.
  void release(Pool& pool);

 private:
  static constexpr uint32_t none = UINT32_MAX;

  Arrival receive_around_hole(Psn psn, Pool& pool);
  Arrival classify_other(Psn psn, Pool& pool) const;
  // Returns whether the bitmap says that this packet has arrived.
  bool test(const Bitmap& bitmap, Psn psn) const {
    return bitmap.words[psn.value % max_window / 64] >> psn.value % 64 & 1;
  }

  Psn expected_;
  Psn highest_;
  uint32_t window_;
  bool keeps_;
  uint32_t kept_ = 0;       // packets out of order
  uint32_t bitmap_ = none;  // index in the pool
};

}  // namespace urma::transport
