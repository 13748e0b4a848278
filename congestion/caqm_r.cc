// SPDX-License-Identifier: Apache-2.0
#include "congestion/caqm_r.h"

#include <algorithm>

#include "congestion/arithmetic.h"

namespace urma::congestion {
namespace {

// The sender. Rates that a port names differ by their rounding; a rate within this share of the
// present one is averaged over a window instead of being taken as it is.
constexpr double rounding = 0.1;

// The port.
constexpr double utilisation = 0.99;  // of the rate, that is aimed at
constexpr double drain = 0.5;         // of the standing queue, in one averaging time
constexpr double free_packets = 2;    // a queue that is not drained
constexpr double least_target = 0.5;  // of the rate, while a queue drains
constexpr double near_fair = 0.94;    // from this share of the fair rate on, a flow is told it
constexpr double most_counted = 256;  // flows that one packet can count as
constexpr double most_rounds = 256;   // averaging time, in base round trips
constexpr double down_gain = 0.25, up_gain = 0.5;
constexpr double least_excess = 0.5;
// An excess below 1 approaches 1. From here on it counts as 1, because a float stops just below:
// then the flows of a port that was overloaded once would never get what others leave.
constexpr double nearly_one = 0.999;
constexpr double few_refused = 0.1;  // flows, that do not hold the excess back
// In one slot. The average falls slowly, so that hundreds of refused flows, perhaps forged, would
// hold the excess back long after the last of them was refused.
constexpr double most_refused = 8;
// In one slot, of what leaves in a round trip. If more arrives, and more than one packet, many
// senders have begun together at an idle port: their first packets take the spare rate.
constexpr float most_burst = 0.5;
constexpr int idle_slots = 64;  // after which the port forgets

}  // namespace

Signal CaqmR::ask(const Sent& event, bool may_increase) {
  const bool waits = asked_ || (capped_ && window() >= packet());
  if (in_use(event.inflight_bytes + event.bytes)) used_ |= this_round;
  const bool asks = may_increase && (used_ & (this_round | last_round)) && !(limited_ && waits);
  if (asks) asked_ = true;
  return {.increase = asks, .hint = rate_code(bytes_per_second(), chance_of(seed(), event.number))};
}

void CaqmR::begin_round() {
  used_ = static_cast<uint8_t>(used_ << 1) & last_round;
  asked_ = false;
  capped_ = named_;
  named_ = false;
}

void CaqmR::obey(const Acknowledged& event, const Feedback& feedback) {
  const auto bytes = static_cast<double>(event.bytes);
  if (feedback.marked_packets == 0) {
    // Packets that left while the window was not in use did not ask, and were not refused. A grant
    // that comes when it has not been in use for two rounds answers no question of this sender.
    if (feedback.increase || (used_ & last_round)) limited_ = !feedback.increase;
    if (feedback.increase && (used_ != 0 || in_use(event.inflight_bytes))) {
      const double granted = feedback.hint * double{hint_unit};
      set_window(window() + std::min({granted, bytes, window()}));
    }
    return;
  }
  limited_ = capped_ = named_ = true;
  const auto code = static_cast<uint8_t>(std::clamp<unsigned>(feedback.hint, 1, 255));
  const double named = rate_of(code) * base();
  if (named < window() * (1 - rounding)) {
    set_window(named);
    if (window() < packet()) spread(event.now);
  } else {
    const double near = std::min(named, window() * (1 + rounding));
    set_window(window() + (near - window()) * std::min(bytes / window(), 1.0));
  }
}

CaqmRMeter::CaqmRMeter(const PortSettings& settings)
    : rate_(static_cast<float>(std::max(settings.bytes_per_second, code_zero_rate))),
      round_(static_cast<float>(std::max(seconds(settings.base_rtt), 1e-7))),
      seed_(settings.seed),
      packet_(static_cast<uint16_t>(std::clamp<uint32_t>(settings.packet_bytes, 1, 0xffff))),
      last_hop_(settings.last_hop) {
  set_fair(utilisation * rate_);
}

void CaqmRMeter::set_fair(double bytes_per_second) {
  fair_ = static_cast<float>(bytes_per_second);
  const CodedRate coded = coded_rate(fair_);
  fair_low_ = coded.low;
  fair_part_ = coded.part;
}

Signal CaqmRMeter::arrive(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) {
  advance(now, queue_bytes);
  ++packets_;
  arrived_ += static_cast<float>(bytes);
  Signal out = in;
  out.switched = true;
  out.switch_queue =
      queue_code(queue_seconds(in.switch_queue) + static_cast<double>(queue_bytes) / rate_);
  if (in.hint == 0) return out;
  const double rate = rate_of(in.hint);
  const double round_bytes = rate * round_;
  const auto flows = static_cast<float>(std::min(bytes / round_bytes, most_counted));
  counts_[slot_] += flows;
  if (rate > near_fair * fair_) {
    if (in.congested && rate <= fair_) return out;
    capped_ += static_cast<float>(bytes);
    out.congested = true;
    out.increase = false;
    out.last_hop = last_hop_;
    out.hint = CodedRate{fair_low_, fair_part_}.code(chance_of(seed_, packets_));
  } else if (in.increase && !in.congested) {
    const auto growth = static_cast<float>(std::min<double>(bytes, round_bytes));
    const float burst = std::max<float>(most_burst * round_ * rate_, packet_);
    if (tokens_ >= growth && arrived_ <= burst) {
      tokens_ -= growth;
      granted_ += growth;
    } else {
      out.increase = false;
      refused_ += flows;
    }
  }
  return out;
}

void CaqmRMeter::advance(Time now, uint64_t queue_bytes) {
  if (now < slot_end_) return;
  const Duration slot = duration_of(slot_seconds());
  if (slot_end_ != Time::min() && now - slot_end_ < idle_slots * slot) {
    do {
      end_slot(queue_bytes);
      slot_end_ += slot;
    } while (now >= slot_end_);
    return;
  }
  const bool first = slot_end_ == Time::min();
  slot_end_ = now + slot;
  if (first) return;
  counts_ = {};
  arrived_ = refused_ = capped_ = granted_ = 0;
  load_ = refused_flows_ = capped_load_ = growth_ = 0;
  // A sender of one packet in a longer round trip would otherwise be refused each time.
  tokens_ = packet_;
  flows_ = excess_ = 1;
  set_fair(utilisation * rate_);
}

void CaqmRMeter::end_slot(uint64_t queue_bytes) {
  double sum = 0;
  for (const float count : counts_) sum += count;
  slot_ = (slot_ + 1) & (slots - 1);
  counts_[slot_] = 0;
  const double averaged =
      std::clamp<double>(2 * flows_ * packet_ / rate_, round_, most_rounds * round_);
  const double gain = slot_seconds() / averaged;
  const auto average = [&](float& mean, double value) {
    mean = static_cast<float>(mean + (value - mean) * gain);
  };
  average(flows_, sum);
  flows_ = static_cast<float>(std::max<double>(flows_, 1));
  average(load_, arrived_ / slot_seconds());
  average(refused_flows_, std::min<double>(refused_ * slots, most_refused));
  average(capped_load_, capped_ / slot_seconds());
  growth_ = static_cast<float>(growth_ + (granted_ / slot_seconds() - growth_) / slots);
  arrived_ = refused_ = capped_ = granted_ = 0;

  const double standing = std::max(static_cast<double>(queue_bytes) - free_packets * packet_, 0.0);
  const double most = utilisation * rate_;
  const double target = std::clamp(most - drain * standing / averaged, least_target * rate_, most);
  correct(gain, target);
  set_fair(std::min(most, excess_ * target / flows_));
  // A grant of bytes in a round trip adds as much to the load, one round trip later.
  const double spare = target - load_ - growth_;
  const double most_tokens = std::max<double>(spare * round_, packet_);
  tokens_ = static_cast<float>(std::clamp(tokens_ + spare * slot_seconds(), 0.0, most_tokens));
}

void CaqmRMeter::correct(double gain, double target) {
  const double error = std::max((target - load_) / target, -1.0);
  double excess = excess_;
  if (error < 0) excess *= 1 + down_gain * gain * error;
  if (excess < nearly_one || refused_flows_ >= few_refused) {
    if (excess > 1 || error >= 0) excess += up_gain * gain * (1 - excess);
  } else if (error > 0 && capped_load_ > 0) {
    excess *= 1 + up_gain * gain * error;
  }
  excess_ = static_cast<float>(std::clamp<double>(excess, least_excess, flows_));
}

}  // namespace urma::congestion
