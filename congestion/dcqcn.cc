// SPDX-License-Identifier: Apache-2.0
#include "congestion/dcqcn.h"

#include <algorithm>
#include <limits>

#include "congestion/arithmetic.h"

namespace urma::congestion {
namespace {

using namespace std::chrono_literals;

constexpr double gain = 1.0 / 256;
constexpr Duration alpha_period = 55us;
constexpr Duration rate_period = 55us;
constexpr Duration least_between_cuts = 50us;  // by losses
constexpr uint32_t byte_period = 10'000'000;
constexpr uint8_t fast_stages = 5;          // of recovery, before the target grows
constexpr double additive_step = 40e6 / 8;  // bytes per second
constexpr double hyper_step = 100e6 / 8;    // bytes per second
constexpr double least_share = 1.0 / 1024;  // of the line rate
constexpr double least_rate = 41e3;         // bytes per second: a packet of 4 KiB in 100 ms
// The rate of a link that does not state one is taken for 100 Gb/s; in bytes per second.
constexpr double presumed_line_rate = 12.5e9;
// After so many periods without an event, further ones change nothing that matters.
constexpr int most_periods = 4096;
// After so many, alpha is less than a three hundredth of what it was, and is taken for zero.
constexpr int most_alpha_periods = 1500;

}  // namespace

Dcqcn::Dcqcn(const Settings& settings)
    : line_rate_(static_cast<float>(settings.bytes_per_second > 0 ? settings.bytes_per_second
                                                                  : presumed_line_rate)),
      limit_(static_cast<uint32_t>(std::clamp<uint64_t>(settings.limit_bytes, 1, UINT32_MAX))),
      lateness_ns_(static_cast<uint32_t>(std::clamp<Duration::rep>(
          settings.lateness.count(), 0, std::numeric_limits<uint32_t>::max()))) {
  rate_ = target_ = line_rate_;
}

Signal Dcqcn::request(const Sent& event) {
  pass_periods(event.now);
  counted_bytes_ += event.bytes;
  if (counted_bytes_ >= byte_period) {
    counted_bytes_ -= byte_period;
    if (byte_stages_ < UINT8_MAX) ++byte_stages_;
    increase();
  }
  const Time earliest = event.now - Duration(lateness_ns_);
  next_ = std::max(next_, earliest) + duration_of(event.bytes / double{rate_});
  return {};
}

void Dcqcn::correct(const Written& event) {
  next_ -= duration_of(event.unused_bytes / double{rate_});
}

void Dcqcn::pass_periods(Time now) {
  if (rate_period_ == Time::min()) alpha_period_ = rate_period_ = now;
  // A channel that was idle for long must not hold up a pass.
  if (now - alpha_period_ > most_alpha_periods * alpha_period) alpha_ = 0;
  while (alpha_ > 0 && now - alpha_period_ >= alpha_period) {
    alpha_period_ += alpha_period;
    alpha_ = static_cast<float>(alpha_ * (1 - gain));
  }
  // Rounding keeps the rate a little below its target for ever.
  const auto rises = [&] { return target_ < line_rate_ || (rate_ + target_) / 2 != rate_; };
  for (int i = 0; i < most_periods && rises() && now - rate_period_ >= rate_period; ++i) {
    rate_period_ += rate_period;
    if (time_stages_ < UINT8_MAX) ++time_stages_;
    increase();
  }
  if (now - alpha_period_ >= alpha_period) alpha_period_ = now;
  if (now - rate_period_ >= rate_period) rate_period_ = now;
}

void Dcqcn::increase() {
  if (std::min(time_stages_, byte_stages_) > fast_stages) {
    target_ += static_cast<float>(hyper_step);
  } else if (std::max(time_stages_, byte_stages_) > fast_stages) {
    target_ += static_cast<float>(additive_step);
  }
  target_ = std::min(target_, line_rate_);
  rate_ = (rate_ + target_) / 2;
}

void Dcqcn::cut(Time now) {
  pass_periods(now);
  target_ = rate_;
  const double least = std::max(least_share * line_rate_, least_rate);
  rate_ = static_cast<float>(std::max(rate_ * (1 - alpha_ / 2.0), least));
  alpha_ = static_cast<float>((1 - gain) * alpha_ + gain);
  alpha_period_ = rate_period_ = now;
  counted_bytes_ = 0;
  time_stages_ = byte_stages_ = 0;
}

void Dcqcn::handle(const Notified& event) { cut(event.now); }

// DCQCN expects links without loss. If packets are lost all the same, the losses of 50 us count as
// one notification, because receivers send no more than one in that time.
void Dcqcn::handle(const Lost& event) {
  const bool just_cut =
      rate_ < target_ && time_stages_ == 0 && event.now - rate_period_ < least_between_cuts;
  if ((event.bytes > 0 || event.timed_out) && !just_cut) cut(event.now);
}

}  // namespace urma::congestion
