#pragma once

#include <array>
#include <cstdint>

#include "base/slab.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// Which packets of one direction have come (UB 6.4.1), each once (UB 4.3.10). Knows nothing of what
// they hold or when they must be acknowledged. Memory for what came out of order is taken from a
// pool while there is any.
class ReceivedWindow {
 public:
  static constexpr uint32_t max_window = 2048;  // UB 4.3.2: far less than 8M - 1
  struct Bitmap {
    std::array<uint64_t, max_window / 64> words{};  // bit psn % max_window
  };
  using Pool = Slab<Bitmap>;

  // `window`: how far ahead of the expected packet one is accepted; up to max_window. `keeps`:
  // whether it is remembered then (UB 4.4.2, UB 4.4.5).
  ReceivedWindow(Psn first, uint32_t window, bool keeps)
      : expected_(first), highest_(first - 1), window_(window), keeps_(keeps) {}

  enum class Arrival : uint8_t {
    fresh,      // hand it on
    duplicate,  // it has come before
    invalid,    // outside both ranges: no packet of ours
    no_memory,  // out of order, and it cannot be remembered: treat as lost
    not_kept,   // out of order, and nothing of that is remembered: likewise
  };
  Arrival receive(Psn psn, Pool& pool);
  // What `receive` would say, without receiving.
  Arrival classify(Psn psn, Pool& pool) const;

  Psn expected() const { return expected_; }
  // Never falls, and counts packets that could not be remembered (UB 4.4.13).
  Psn highest() const { return highest_; }
  bool keeps() const { return keeps_; }
  bool has_hole() const { return kept_ > 0; }
  uint32_t kept_out_of_order() const { return kept_; }

  // The state as a TPSACK says it, relative to PSN expected() - 1, in at most `bits` bits.
  Saetph selective(uint32_t bits, Pool& pool) const;

  void release(Pool& pool);

 private:
  static constexpr uint32_t none = UINT32_MAX;

  bool test(const Bitmap& bitmap, Psn psn) const {
    return bitmap.words[psn.value % max_window / 64] >> psn.value % 64 & 1;
  }

  Psn expected_;
  Psn highest_;
  uint32_t window_;
  bool keeps_;
  uint32_t kept_ = 0;
  uint32_t bitmap_ = none;
};

}  // namespace urma::transport
