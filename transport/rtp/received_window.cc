// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/received_window.h"

#include <algorithm>

namespace urma::transport {
namespace {

constexpr int64_t duplicate_range = 8 << 20;  // UB 4.3.4: duplicates are [EPSN - 8M, EPSN - 1]

}  // namespace

ReceivedWindow::Arrival ReceivedWindow::classify_other(Psn psn, Pool& pool) const {
  const int64_t ahead = psn - expected_;
  if (ahead < 0) return ahead >= -duplicate_range ? Arrival::duplicate : Arrival::invalid;
  if (ahead >= window_) return Arrival::invalid;  // UB 4.3.5, UB 4.3.6
  if (!keeps_) return Arrival::not_kept;
  if (bitmap_ == none) return pool.full() ? Arrival::no_memory : Arrival::fresh;
  return test(pool.at(bitmap_), psn) ? Arrival::duplicate : Arrival::fresh;
}

ReceivedWindow::Arrival ReceivedWindow::receive_around_hole(Psn psn, Pool& pool) {
  const Arrival arrival = classify(psn, pool);
  if (arrival != Arrival::duplicate && arrival != Arrival::invalid)
    highest_ = std::max(highest_, psn);
  if (arrival != Arrival::fresh) return arrival;

  if (psn != expected_) {
    if (bitmap_ == none) bitmap_ = pool.index_of(pool.create());
    pool.at(bitmap_).words[psn.value % max_window / 64] |= uint64_t{1} << psn.value % 64;
    ++kept_;
    return arrival;
  }
  ++expected_;
  if (kept_ == 0) return arrival;
  Bitmap& bitmap = pool.at(bitmap_);
  while (kept_ > 0 && test(bitmap, expected_)) {
    bitmap.words[expected_.value % max_window / 64] &= ~(uint64_t{1} << expected_.value % 64);
    ++expected_;
    --kept_;
  }
  if (kept_ == 0) release(pool);
  return arrival;
}

Saetph ReceivedWindow::selective(uint32_t bits, Pool& pool) const {
  Saetph out;
  out.max_received = highest_.wire();
  const auto span = static_cast<uint64_t>(highest_ - (expected_ - 1)) + 1;
  while (out.bit_count < span && out.bit_count < bits) out.bit_count *= 2;
  out.set_bit(0);
  if (bitmap_ == none) return out;
  const Bitmap& bitmap = pool.at(bitmap_);
  for (uint32_t i = 1; i < std::min<uint64_t>(span, out.bit_count); ++i) {
    if (test(bitmap, expected_ - 1 + i)) out.set_bit(i);
  }
  return out;
}

void ReceivedWindow::release(Pool& pool) {
  if (bitmap_ == none) return;
  pool.destroy(&pool.at(bitmap_));
  bitmap_ = none;
  kept_ = 0;
}

}  // namespace urma::transport
