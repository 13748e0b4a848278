// SPDX-License-Identifier: Apache-2.0
#include "congestion/caqm_w.h"

#include <algorithm>

#include "congestion/arithmetic.h"

namespace urma::congestion {
namespace {

constexpr double alpha = 0.25;             // packets that a window grows by in a round trip
constexpr double beta = 0.5;               // packets that a mark takes
constexpr double most_growth = 0.25;       // of a window, by one acknowledgement after slow start
constexpr double small_growth = 1.0 / 64;  // packets; of a window below `alpha` packets
constexpr double most_loss = 0.1;          // of a window, by one mark
constexpr double least_left = 0.5;         // of a window, after one acknowledgement
constexpr uint8_t patience_rounds = 10;    // granted ones, after which slow start begins again
constexpr unsigned most_hint = 255;

// The port.
constexpr double share = 0.5;        // of the spare bytes that becomes budget in a slot
constexpr double free_packets = 16;  // a queue that costs no budget
constexpr double fair_share = 0.5;   // of that queue, when all have the fair window
constexpr int slots = 16;            // of a base round trip
constexpr double least_slot_packets = 2;
constexpr double early_marks = 0.1;  // of the packets of flows above the fair window
constexpr double most_rounds = 256;  // averaging time, in base round trips
constexpr int idle_slots = 64;

}  // namespace

// After slow start, the wish tells the port how large the window is: see CaqmWMeter.
double CaqmW::wish(double bytes) const {
  return slow_start() ? bytes : std::min(alpha * packet() * bytes / window(), bytes);
}

// Rounded to a whole number of units by chance, so that the mean is right: a wish is often less
// than a unit.
Signal CaqmW::ask(const Sent& event, bool may_increase) {
  const double units = wish(event.bytes) / hint_unit + chance_of(seed(), event.number);
  const uint64_t hint = whole_bytes(units, most_hint);
  return {.increase = may_increase, .hint = static_cast<uint8_t>(hint)};
}

// Returns how much one acknowledgement adds at most. A forged hint gives no more than slow start.
// Below `alpha` packets each window asks for whole packets, so the growth must not depend on the
// window: otherwise the larger ones would grow faster.
double CaqmW::most_increase(double bytes) const {
  if (slow_start()) return bytes;
  return window() < alpha * packet() ? small_growth * packet()
                                     : std::min(most_growth * window(), bytes);
}

void CaqmW::obey(const Acknowledged& event, const Feedback& feedback) {
  if (feedback.increase && in_use(event.inflight_bytes)) {
    const double granted = feedback.hint * double{hint_unit};
    const double most = most_increase(static_cast<double>(event.bytes));
    set_window(window() + std::min({granted, most, window()}));
  }
  if (feedback.marked_packets > 0) {
    const double each = std::min(beta * packet(), most_loss * window());
    set_window(std::max(window() - feedback.marked_packets * each, least_left * window()));
    if (window() < packet()) spread(event.now);
  }
  granted_ = granted_ || feedback.increase;
  if (feedback.marked_packets > 0 || !feedback.increase) {
    rounds_granted_ = 0;
    granted_ = false;
    set_slow_start(false);
  }
}

void CaqmW::begin_round() {
  if (!granted_) return;
  granted_ = false;
  if (rounds_granted_ < patience_rounds) {
    ++rounds_granted_;
  } else {
    set_slow_start(true);
  }
}

CaqmWMeter::CaqmWMeter(const PortSettings& settings)
    : rate_(std::max(settings.bytes_per_second, code_zero_rate)),
      round_(std::max(seconds(settings.base_rtt), 1e-7)),
      packet_(std::max<uint32_t>(settings.packet_bytes, 1)),
      share_of_wish_(alpha * packet_ / (rate_ * round_ + fair_share * free_packets * packet_)),
      seed_(settings.seed),
      last_hop_(settings.last_hop) {}

Signal CaqmWMeter::arrive(Time, uint32_t, uint64_t queue_bytes, Signal in) {
  in.switched = true;
  in.switch_queue =
      queue_code(queue_seconds(in.switch_queue) + static_cast<double>(queue_bytes) / rate_);
  return in;
}

void CaqmWMeter::refuse(Signal& signal, bool mark) const {
  signal.increase = false;
  if (!mark) return;
  signal.congested = true;
  signal.last_hop = last_hop_;
}

// A sender asks for alpha packets in a round trip, so the sum of what is asked counts the flows;
// and a sender that asks for less has the larger window. Only those above the fair one are marked.
// A packet in slow start does not tell its sender's window, which counts as the fair one: if each
// of its packets counted as a flow, all other senders would seem to be above their share.
Signal CaqmWMeter::depart(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) {
  advance(now, queue_bytes);
  sent_ += bytes;
  ++packets_;
  // Senders ignore marks on packets that ask for nothing, for example acknowledgements.
  if (!in.increase && in.hint == 0) return in;
  const double wish = std::min<double>(in.hint * double{hint_unit}, bytes);
  if (in.hint > 0)
    counted_ += wish < bytes ? wish / (alpha * packet_) : std::min(bytes / fair_window(), 1.0);
  // A sender with the fair window asks for this. If only a little budget is left, those that ask
  // for less may not take it all: their windows are larger.
  const double fair_wish = std::min(share_of_wish_ * flows_, 1.0) * bytes;
  const bool above = wish <= fair_wish;
  const double needed = std::max(wish, fair_wish);
  const bool early = budget_ < needed && chance_of(seed_, packets_) < early_marks;
  if (in.congested) {
    expect_cut();
  } else if (above && (budget_ < 0 || early)) {
    refuse(in, true);
    expect_cut();
  } else if (in.increase && budget_ >= needed) {
    budget_ -= wish;
    granted_ += wish;
  } else {
    refuse(in, false);
  }
  return in;
}

double CaqmWMeter::fair_window() const { return alpha * packet_ / (share_of_wish_ * flows_); }

// The sender of a packet with C will give up part of its window, which is at least the fair one.
void CaqmWMeter::expect_cut() {
  budget_ += beta * packet_;
  growth_ -= std::min(beta * packet_, most_loss * fair_window());
}

double CaqmWMeter::slot_seconds() const {
  return std::max(round_ / slots, least_slot_packets * packet_ / rate_);
}

void CaqmWMeter::advance(Time now, uint64_t queue_bytes) {
  if (now < slot_end_) return;
  const Duration slot = duration_of(slot_seconds());
  if (slot_end_ == Time::min() || now - slot_end_ > idle_slots * slot) {
    slot_end_ = now + slot;
    budget_ = share * rate_ * slot_seconds();
    sent_ = granted_ = counted_ = growth_ = 0;
    flows_ = 1;
    return;
  }
  do {
    end_slot(queue_bytes);
    slot_end_ += slot;
  } while (now >= slot_end_);
}

void CaqmWMeter::end_slot(uint64_t queue_bytes) {
  const double slot = slot_seconds();
  const double averaged = std::clamp(2 * flows_ * packet_ / rate_, round_, most_rounds * round_);
  // In a queue, the packets of a window are further apart.
  const double trip = round_ + static_cast<double>(queue_bytes) / rate_;
  flows_ = std::max(flows_ + (counted_ * trip - flows_ * slot) / averaged, 1.0);
  const double spare = rate_ * slot - sent_;
  const double queue = static_cast<double>(queue_bytes) - free_packets * packet_;
  // A grant adds to the load one round trip later, and a mark takes from it. So the grants of the
  // last one are subtracted from what the port could send more in a round trip; and what its marks
  // take is subtracted from the queue, which each slot would otherwise mark for again.
  growth_ += granted_ - growth_ * std::min(slot / round_, 1.0);
  const double drained = std::max(std::min(queue, -growth_), 0.0);
  const double left = spare * round_ / slot - growth_ - drained;
  budget_ = share * (std::min(spare, left) - (queue - drained));
  sent_ = granted_ = counted_ = 0;
}

}  // namespace urma::congestion
