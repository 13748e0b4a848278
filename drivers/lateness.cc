// SPDX-License-Identifier: Apache-2.0
#include "drivers/lateness.h"

#include <algorithm>

namespace urma::drivers {
namespace {

Duration drawn(Duration least, Duration jitter, Prng& prng) {
  if (jitter == Duration{}) return least;
  return least + Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(jitter.count()))));
}

}  // namespace

void Lateness::read_options(OptionReader& options) {
  options.duration("hold", hold, {"how long after `send` a frame's memory is read, as a NIC does"});
  options.duration("hold_jitter", hold_jitter, {"additional delay, at random up to this"});
  options.duration("settle", settle, {"how long after this reading the frame settles"});
  options.duration("settle_jitter", settle_jitter, {"additional delay, at random up to this"});
  options.number("ring", ring, {"the most frames that the port holds", "all frames that it has"});
}

void LateFrames::take(TxFrame* frame, Time now, Prng& prng) {
  Held held{.frame = frame,
            .read_at = now + drawn(lateness_.hold, lateness_.hold_jitter, prng),
            .settled_at = {}};
  if (read_ < taken_) held.read_at = std::max(held.read_at, at(taken_ - 1).read_at);
  held.settled_at = held.read_at + drawn(lateness_.settle, lateness_.settle_jitter, prng);
  if (settled_ < taken_) held.settled_at = std::max(held.settled_at, at(taken_ - 1).settled_at);
  at(taken_++) = held;
}

TxFrame* LateFrames::read(Time now) {
  if (read_ == taken_ || at(read_).read_at > now) return nullptr;
  return at(read_++).frame;
}

TxFrame* LateFrames::settle(Time now) {
  if (settled_ == read_ || at(settled_).settled_at > now) return nullptr;
  return at(settled_++).frame;
}

Time LateFrames::next() const {
  Time next = never;
  if (settled_ < read_) next = at(settled_).settled_at;
  if (read_ < taken_) next = std::min(next, at(read_).read_at);
  return next;
}

}  // namespace urma::drivers
