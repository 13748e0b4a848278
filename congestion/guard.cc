// SPDX-License-Identifier: Apache-2.0
#include "congestion/guard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "congestion/arithmetic.h"

namespace urma::congestion {
namespace {

constexpr double least_packets = 1.0 / 1024;
// Between two packets. A longer gap would look like a peer that is not running.
constexpr double most_gap = 0.1;  // seconds
constexpr double most_bdp = 4;
constexpr Duration presumed_base{10'000};  // until a round trip was measured
// A link is slow if it needs more than this share of a round trip to send a full packet. Faster
// links need less than what round trips vary by.
constexpr double slow_share = 0.1;

// Rounds without S after which the guard alone decides.
constexpr uint8_t patience_rounds = 2;

// The delay that does not count as congestion, in base round trips; and what is added for small
// windows, so that many senders with less than a packet each find a common window (Swift's flow
// scaling).
constexpr double target_share = 0.35;
constexpr double scaling = 0.5;
constexpr double least_scaled_packets = 1.0 / 16;
constexpr double most_scaled_packets = 64;
constexpr double small_step = 0.125;  // of a packet, for each packet
constexpr double delay_cut = 0.8;     // of the share of the round trip that is above the target
constexpr double least_factor = 0.5;

// The room for the train of a late sender, at most: a share of the window. With room for all that
// leaves in a lateness of many round trips, the window would not bound a queue any more.
constexpr double most_train = 0.25;
// A sender of a named rate whose ends run later than they should may catch up with so many bytes: a
// quarter of a usual queue of a switch.
constexpr double most_catch_up = 64 << 10;

// Rounds without a cut, after which a sender takes all that switches grant.
constexpr uint8_t wary_rounds = 16;

constexpr double loss_factor = 0.7;
constexpr double notified_factor = 0.5;
constexpr double marked_gain = 1.0 / 16;  // per window of acknowledged bytes

constexpr Feedback nothing{};

uint32_t nanoseconds(Duration time) {
  return static_cast<uint32_t>(
      std::clamp<Duration::rep>(time.count(), 0, std::numeric_limits<uint32_t>::max()));
}

// Returns how late the processes of a round trip may be together, in seconds, each by so much: both
// ends, and a switch on the way there and back.
double lateness_of_round(uint32_t lateness_ns) { return 4e-9 * lateness_ns; }

}  // namespace

Guarded::Guarded(const Settings& settings, Told told)
    : limit_(static_cast<uint32_t>(std::clamp<uint64_t>(settings.limit_bytes, 1, UINT32_MAX))),
      link_(static_cast<float>(std::max(settings.bytes_per_second, 0.0))),
      base_ns_(nanoseconds(settings.base_rtt)),
      lateness_ns_(nanoseconds(settings.lateness)),
      seed_(settings.seed),
      packet_(static_cast<uint16_t>(std::clamp<uint32_t>(settings.packet_bytes, 1, 0xffff))),
      rounds_without_switch_(patience_rounds + 1),
      calm_rounds_(wary_rounds),
      told_rates_(told == Told::rates),
      base_given_(settings.base_rtt > Duration{}) {
  window_ = 0;
  set_window(packet_);
}

bool Guarded::alone() const { return rounds_without_switch_ > patience_rounds; }

double Guarded::base() const { return base_ns_ == 0 ? seconds(presumed_base) : base_ns_ * 1e-9; }

double Guarded::bytes_per_second() const {
  const double rate = window_ / base();
  return link_ > 0 ? std::min<double>(rate, link_) : rate;
}

// The base round trip may have been measured while both ends were punctual, so what the link
// carries while an end is late is added to the largest window.
void Guarded::set_window(double bytes) {
  const double longest = base() + lateness_ns_ * 1e-9;
  const double room = link_ > 0 ? std::max<double>(most_bdp * link_ * longest, packet_) : limit_;
  const double most = std::min<double>(room, limit_);
  const double least = packet_ * std::max(base() / most_gap, least_packets);
  window_ = static_cast<float>(std::clamp(bytes, std::min(least, most), most));
}

// Returns how many bytes leave at the rate that switches have named while an end is as late as it
// was lately. Zero if ends are late for no more than a round trip, or no switch names a rate.
double Guarded::catch_up() const {
  if (!told_rates_ || punctual() || alone()) return 0;
  const double expected = bytes_per_second() * lateness_ns_ * 1e-9;
  return std::min(expected * ends_.longest(), std::max(expected, most_catch_up));
}

// In whole packets, rounded up, because pacing bounds the rate: with a window of 2.9 packets, the
// third packet would otherwise wait for an acknowledgement. While switches take part, a sender that
// runs late catches up with its schedule by a train, whose packets are in flight all at once. A
// rate that they name holds however late the receiver runs, so there is room for what leaves until
// its acknowledgements come; a window that they grant has grown to that already. The guard alone
// learns the rate from the window: a train beyond it would flood a path that holds less than a
// packet.
uint64_t Guarded::window_bytes() const {
  const double packets = window_ / packet_;
  const double lateness = lateness_ns_ * 1e-9 / base();
  const double stated = std::min(lateness, most_train);
  const double share = std::max(stated, catch_up() / std::max<double>(window_, 1));
  const double train = alone() ? 0 : std::floor(packets * share);
  return std::max<uint64_t>(whole_bytes((std::ceil(packets) + train) * packet_, limit_), 1);
}

bool Guarded::in_use(uint64_t inflight_bytes) const {
  return static_cast<double>(inflight_bytes) * 2 >= window_;
}

// Returns how much later the next packet leaves because of so many bytes of this one. Senders of
// less than a packet would stay in step with each other for long. Two gaps together are exact, so
// that what chance adds does not accumulate.
Duration Guarded::gap(double bytes, uint64_t number) const {
  const double drawn = chance_of(seed_, number / 2);
  const double jitter = window_ >= packet_ ? 1 : number % 2 == 0 ? 0.5 + drawn : 1.5 - drawn;
  return duration_of(bytes / bytes_per_second() * jitter);
}

Signal Guarded::request(const Sent& event) {
  const double owed = catch_up();
  const Duration late = owed > 0 ? duration_of(owed / bytes_per_second()) : Duration{};
  const Time earliest = event.now - std::max(late, Duration(lateness_ns_));
  next_ = std::max(next_, earliest) + gap(event.bytes, event.number);
  return ask(event, !event.again);
}

void Guarded::correct(const Written& event) { next_ -= gap(event.unused_bytes, event.number); }

void Guarded::spread(Time now) {
  const double gap = packet_ / bytes_per_second();
  const auto number = static_cast<uint64_t>(now.time_since_epoch().count());
  next_ = now + duration_of(gap * chance_of(~uint64_t{seed_}, number));
}

void Guarded::handle(const Acknowledged& event) {
  const Feedback& feedback = event.feedback == nullptr ? nothing : *event.feedback;
  learn_base(event);
  note_round(event.now, event.rtt);
  const double before = window_;
  if (feedback.switched) {
    rounds_without_switch_ = 0;
    obey(event, feedback);
    // A switch grants what it has; the queue that was found is at another hop.
    if (calm_rounds_ < wary_rounds) {
      const double most = before + careful_growth(static_cast<double>(event.bytes));
      set_window(std::min<double>(window_, most));
    }
  } else if (alone() && in_use(event.inflight_bytes)) {
    const auto bytes = static_cast<double>(event.bytes);
    set_window(window_ + (slow_start_ ? std::min<double>(bytes, window_) : careful_growth(bytes)));
  }
  hold_back(event, feedback, before);
  if (window_ < before) undo_ = 0;
}

// The least round trip may be that of a small packet. A full one takes longer, at least by the time
// in which this host's link sends it. On a slow link, that alone would look like a queue, and a
// packet would be more than the window of a round trip.
void Guarded::learn_base(const Acknowledged& event) {
  if (base_given_) return;
  const bool known = event.least_rtt > Duration{};
  const Duration least = known ? event.least_rtt : event.sample;
  if (least > Duration{}) {
    const double sending = link_ > 0 ? packet_ / link_ : 0;
    const bool slow = sending > slow_share * seconds(least);
    const uint32_t full = nanoseconds(slow ? least + duration_of(sending) : least);
    base_ns_ = known || base_ns_ == 0 ? full : std::min(base_ns_, full);
  }
  set_window(window_);
}

void Guarded::note_round(Time now, Duration rtt) {
  if (now < round_end_) return;
  round_end_ = now + std::max(rtt, duration_of(base()));
  may_cut_ = true;
  if (!alone() && rounds_without_switch_++ == patience_rounds) slow_start_ = false;
  if (calm_rounds_ < wary_rounds) ++calm_rounds_;
  ends_.begin_round();
  begin_round();
}

// Returns a packet for each window of acknowledged bytes. A window below a packet has few
// acknowledgements, so each of them counts less.
double Guarded::careful_growth(double bytes) const {
  return bytes * (window_ < packet_ ? small_step : packet_ / std::max<double>(window_, 1));
}

double Guarded::target_delay() const {
  const double packets =
      std::clamp<double>(window_ / packet_, least_scaled_packets, most_scaled_packets);
  const double scaled = scaling * (1 / std::sqrt(packets) - 1 / std::sqrt(most_scaled_packets));
  return base() * (target_share + scaled) + lateness_ns_ * 1e-9;
}

// Returns the delay that is neither of the path nor of a queue that switches report, on the way of
// the packets or of the acknowledgement. Zero if one of these queues is longer than codes can say:
// what exceeds the largest code would look like a queue elsewhere.
double Guarded::foreign_delay(const Acknowledged& event, const Feedback& feedback) const {
  if (std::max(feedback.switch_queue, feedback.ack_queue) >= largest_queue_code) return 0;
  return seconds(event.sample) - base() - queue_seconds(feedback.switch_queue) -
         queue_seconds(feedback.ack_queue);
}

void Guarded::note_marks(const Acknowledged& event, const Feedback& feedback) {
  const auto bytes = static_cast<double>(event.bytes);
  const double weight = marked_gain * std::min(bytes / std::max<double>(window_, 1), 1.0);
  const double share =
      event.bytes == 0 ? 0 : std::min(static_cast<double>(feedback.marked_bytes) / bytes, 1.0);
  marked_ = static_cast<float>(marked_ + weight * (share - marked_));
}

// Returns whether processes are late for no more than a round trip. Otherwise a delay says little:
// on a machine that has fewer processors than busy threads, all round trips may be long, the
// shortest one as well. While switches report their queues, such a delay then reduces the window
// only together with a loss or a mark of ECN. The guard alone treats a delay that lasts as a queue,
// but leaves a packet in a round trip.
bool Guarded::punctual() const { return lateness_of_round(lateness_ns_) <= 1e-9 * base_ns_; }

void Guarded::hold_back(const Acknowledged& event, const Feedback& feedback, double before) {
  note_marks(event, feedback);
  if (event.sample > Duration{}) {
    const double delay = foreign_delay(event, feedback), target = target_delay();
    const double lateness = lateness_ns_ * 1e-9;
    ends_.note(delay, lateness, target);
    if (delay > target && (punctual() || (alone() && ends_.all_late()))) {
      const double unsure =
          alone() && punctual() ? 0 : std::min(lateness_of_round(lateness_ns_), base());
      const double least = packet_ * std::min(unsure / seconds(event.rtt), 1.0);
      const double factor = 1 - delay_cut * (delay - target) / seconds(event.sample);
      set_window(std::min<double>(window_, before));
      cut(std::max(factor, least_factor), event.now, least);
    }
  }
  if (feedback.marked_bytes > 0) {
    set_window(std::min<double>(window_, before));
    cut(1 - std::max<double>(marked_, marked_gain) / 2, event.now);
  }
}

void Guarded::cut(double factor, Time now, double least) {
  if (!may_cut_) return;
  may_cut_ = false;
  slow_start_ = false;
  calm_rounds_ = 0;
  undo_ = 0;
  set_window(std::min<double>(window_, std::max(window_ * factor, least)));
  if (window_ < packet_) spread(now);
}

void Guarded::handle(const Lost& event) {
  note_round(event.now, event.rtt);
  const float before = window_;
  if (event.timed_out) {
    set_window(std::min<double>(window_, packet_));
  } else if (alone() || (!punctual() && ends_.all_late())) {
    cut(loss_factor, event.now);
  }
  if (window_ < before) undo_ = before;
}

void Guarded::handle(const Notified& event) {
  note_round(event.now, event.rtt);
  cut(notified_factor, event.now);
}

void Guarded::handle(const Spurious&) {
  if (undo_ > 0) set_window(std::max(window_, undo_));
  undo_ = 0;
}

}  // namespace urma::congestion
