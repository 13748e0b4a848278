// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/congestion/bottleneck.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "congestion/arithmetic.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration delayed = 20us;    // an acknowledgement, at most
constexpr Duration time_out = 200us;  // until a lost acknowledgement is asked for again

int64_t picoseconds_of(Time time) { return time.time_since_epoch().count() * 1000; }
int64_t picoseconds_of(Duration time) { return time.count() * 1000; }

}  // namespace

Bottleneck::Bottleneck(const BottleneckOptions& options)
    : options_(options), kind_(*congestion::find_controller(options.controller)) {
  hops_.resize(options.hops.size());
  uint32_t seed = options.seed;
  for (size_t i = 0; i < hops_.size(); ++i) {
    Hop& hop = hops_[i];
    hop.options = options.hops[i];
    if (hop.options.meter.empty()) continue;
    hop.meter = congestion::find_port_meter(hop.options.meter)
                    ->make(hop.storage.data(), {.bytes_per_second = hop.options.bytes_per_second,
                                                .base_rtt = options.base_rtt,
                                                .packet_bytes = options.packet_bytes,
                                                .seed = ++seed,
                                                .last_hop = i + 1 == hops_.size()});
  }
  senders_.reserve(4096);  // controllers lie in them
}

Bottleneck::~Bottleneck() {
  for (Sender& sender : senders_) sender.controller->~Controller();
  for (Hop& hop : hops_) {
    if (hop.meter != nullptr) hop.meter->~PortMeter();
  }
}

Duration Bottleneck::base_of(const Sender& sender) const {
  return sender.options.base_rtt > Duration{} ? sender.options.base_rtt : options_.base_rtt;
}

void Bottleneck::add(const SenderOptions& options) {
  senders_.emplace_back(options);
  Sender& sender = senders_.back();
  const auto index = static_cast<uint32_t>(senders_.size() - 1);
  sender.controller = kind_.make(sender.storage.data(),
                                 {.packet_bytes = options_.packet_bytes,
                                  .limit_bytes = options_.limit_bytes,
                                  .bytes_per_second = options_.link_bytes_per_second,
                                  .base_rtt = options_.tell_base ? base_of(sender) : Duration{},
                                  .seed = options_.seed * 7919 + index});
  post(picoseconds_of(options.start), What::start, index);
  if (options.each > Duration{})
    post(picoseconds_of(options.start + options.each), What::more, index);
}

void Bottleneck::want_more(uint32_t index) {
  Sender& sender = senders_[index];
  sender.wanted += sender.options.bytes;
  post(picoseconds_ + picoseconds_of(sender.options.each), What::more, index);
  try_send(index);
}

void Bottleneck::post_event(Event event) {
  event.order = ++orders_;
  events_.push(event);
}

void Bottleneck::run(Time until) {
  while (!events_.empty() && events_.top().at <= picoseconds_of(until)) {
    const Event event = events_.top();
    events_.pop();
    picoseconds_ = event.at;
    now_ = Time(Duration((event.at + 999) / 1000));
    handle(event);
  }
  now_ = until;
}

void Bottleneck::handle(const Event& event) {
  switch (event.what) {
    case What::start:
      try_send(event.which);
      break;
    case What::more:
      want_more(event.which);
      break;
    case What::wake:
      if (senders_[event.which].wakes > now_) return;
      senders_[event.which].wakes = never;
      try_send(event.which);
      break;
    case What::depart:
      leave(event.which);
      break;
    case What::acknowledge:
      acknowledge(event);
      break;
    case What::lost:
      lose(event);
      break;
    case What::notify:
      senders_[event.which].controller->handle(congestion::Notified{
          .now = now_, .rtt = senders_[event.which].smoothed, .severe = true, .last_hop = true});
      break;
    case What::late:
    case What::time_out:
      catch_up(event);
      break;
  }
}

void Bottleneck::try_send(uint32_t index) {
  Sender& sender = senders_[index];
  while (now_ < sender.options.stop) {
    const bool again = sender.again > 0;
    const uint64_t left = again ? sender.again : sender.wanted - sender.sent;
    if (left == 0) return;
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(left, options_.packet_bytes));
    const congestion::Allowance allowance = sender.controller->allowance(now_);
    if (sender.inflight > 0 && sender.inflight + bytes > allowance.window_bytes) return;
    // A host's own link is a pacer, too.
    const Duration line = congestion::duration_of(bytes / options_.link_bytes_per_second);
    const Time line_free = sender.last_send == Time::min() ? now_ : sender.last_send + line;
    const Time may = std::max(allowance.not_before, line_free);
    if (may > now_) {
      if (may < sender.wakes) {
        sender.wakes = may;
        post(picoseconds_of(may), What::wake, index);
      }
      return;
    }
    send(index, bytes, again);
  }
}

void Bottleneck::send(uint32_t index, uint32_t bytes, bool again) {
  Sender& sender = senders_[index];
  const congestion::Signal signal = sender.controller->request({.now = now_,
                                                                .number = ++sender.number,
                                                                .bytes = bytes,
                                                                .again = again,
                                                                .inflight_bytes = sender.inflight});
  sender.inflight += bytes;
  sender.last_send = now_;
  (again ? sender.again : sender.sent) += again ? uint64_t{0} - bytes : bytes;
  const Packet packet{.sender = index,
                      .bytes = bytes,
                      .number = sender.number,
                      .sent = now_,
                      .signal = signal,
                      .marked = false};
  if (options_.loss > 0 && chance() < options_.loss) {
    const Duration late = std::max(sender.smoothed, base_of(sender)) * 5 / 4;
    post_event({.at = picoseconds_ + picoseconds_of(late),
                .what = What::lost,
                .which = index,
                .bytes = bytes});
    return;
  }
  enter(sender.options.first_hop, packet);
}

void Bottleneck::forge(uint32_t bytes, const congestion::Signal& signal) {
  picoseconds_ = std::max(picoseconds_, picoseconds_of(now_));
  enter(0, {.sender = forged,
            .bytes = bytes,
            .number = 0,
            .sent = now_,
            .signal = signal,
            .marked = false});
}

void Bottleneck::enter(size_t index, const Packet& packet) {
  Hop& hop = hops_[index];
  const double waits = static_cast<double>(std::max<int64_t>(hop.busy_until - picoseconds_, 0));
  const double waiting = waits * 1e-12 * hop.options.bytes_per_second;
  Packet inside = packet;
  const auto queue_bytes = static_cast<uint64_t>(waiting);
  if (hop.meter != nullptr) {
    inside.signal = hop.meter->arrive(now_, packet.bytes, queue_bytes, packet.signal);
  }
  if (marks(hop, waiting)) inside.marked = true;
  const double full = waiting + packet.bytes;
  hop.peak = std::max(hop.peak, full);
  hop.samples.push_back(static_cast<float>(full));
  hop.queued += packet.bytes;
  hop.busy_until = std::max(hop.busy_until, picoseconds_) +
                   std::llround(packet.bytes / hop.options.bytes_per_second * 1e12);
  hop.queue.push_back(inside);
  post(hop.busy_until, What::depart, static_cast<uint32_t>(index));
}

bool Bottleneck::marks(const Hop& hop, double queue_bytes) {
  const auto least = static_cast<double>(hop.options.mark_bytes);
  const auto most = static_cast<double>(hop.options.mark_most_bytes);
  if (least == 0 || queue_bytes <= least) return false;
  if (queue_bytes >= most) return true;
  return chance() < hop.options.most_chance * (queue_bytes - least) / (most - least);
}

// A receiver of marked packets sends a notification (CNP) at most once in 50 us.
void Bottleneck::notify(Sender& sender, uint32_t index) {
  if (kind_.needs != congestion::Needs::notifications) return;
  if (sender.notified != Time::min() && now_ < sender.notified + 50us) return;
  sender.notified = now_;
  post(picoseconds_ + picoseconds_of(base_of(sender)), What::notify, index);
}

void Bottleneck::leave(size_t index) {
  Hop& hop = hops_[index];
  Packet packet = hop.queue.front();
  hop.queue.pop_front();
  hop.queued -= packet.bytes;
  if (hop.meter != nullptr) {
    packet.signal = hop.meter->depart(now_, packet.bytes, hop.queued, packet.signal);
  }
  if (packet.sender == forged) return;
  const size_t last = senders_[packet.sender].options.last_hop;
  if (index < last && index + 1 < hops_.size()) return enter(index + 1, packet);
  deliver(packet);
}

void Bottleneck::deliver(const Packet& packet) {
  Sender& sender = senders_[packet.sender];
  sender.delivered += packet.bytes;
  sender.unacknowledged_bytes += packet.bytes;
  if (packet.marked) {
    sender.marked_bytes += packet.bytes;
    notify(sender, packet.sender);
  }
  const bool urgent = sender.echo.add(packet.signal, packet.bytes, kind_.needs);
  ++sender.unacknowledged;
  const bool last = sender.delivered >= sender.wanted || now_ >= sender.options.stop;
  if (sender.finished == never && sender.delivered >= sender.options.bytes) sender.finished = now_;
  const bool waits = sender.unacknowledged < options_.packets_per_ack && !urgent && !last &&
                     sender.inflight > sender.unacknowledged_bytes;
  const bool lost = !waits && options_.ack_loss > 0 && chance() < options_.ack_loss;
  if (!waits && !lost) return return_acknowledgement(packet.sender, packet.sent);
  // In case that no packet follows.
  post_event({.at = picoseconds_ + picoseconds_of(lost ? time_out : delayed),
              .what = lost ? What::time_out : What::late,
              .which = packet.sender,
              .sent = packet.sent});
}

void Bottleneck::return_acknowledgement(uint32_t index, Time sent) {
  Sender& sender = senders_[index];
  double transmission = 0;
  for (const Hop& hop : hops_) transmission += options_.packet_bytes / hop.options.bytes_per_second;
  const double propagation = std::max(congestion::seconds(base_of(sender)) - transmission, 0.0);
  const double late = chance() * congestion::seconds(options_.ack_jitter);
  congestion::Feedback feedback = sender.echo.take(kind_.needs);
  feedback.marked_bytes = std::exchange(sender.marked_bytes, 0);
  sender.unacknowledged = 0;
  post_event({.at = picoseconds_ + std::llround((propagation + late) * 1e12),
              .what = What::acknowledge,
              .which = index,
              .bytes = std::exchange(sender.unacknowledged_bytes, 0),
              .sent = sent,
              .feedback = feedback});
}

void Bottleneck::catch_up(const Event& event) {
  Sender& sender = senders_[event.which];
  if (sender.unacknowledged_bytes == 0) return;
  if (event.what == What::time_out) {
    sender.controller->handle(
        congestion::Lost{.now = now_, .rtt = sender.smoothed, .bytes = 0, .timed_out = true});
  }
  return_acknowledgement(event.which, event.sent);
}

void Bottleneck::acknowledge(const Event& event) {
  Sender& sender = senders_[event.which];
  const Duration sample = now_ - event.sent;
  sender.smoothed = sender.smoothed == Duration{} ? sample : (sender.smoothed * 7 + sample) / 8;
  sender.least = sender.least == Duration{} ? sample : std::min(sender.least, sample);
  sender.controller->handle(congestion::Acknowledged{.now = now_,
                                                     .rtt = sender.smoothed,
                                                     .bytes = event.bytes,
                                                     .inflight_bytes = sender.inflight,
                                                     .sample = sample,
                                                     .least_rtt = sender.least,
                                                     .feedback = &event.feedback});
  sender.inflight -= std::min(event.bytes, sender.inflight);
  try_send(event.which);
}

void Bottleneck::lose(const Event& event) {
  Sender& sender = senders_[event.which];
  sender.controller->handle(congestion::Lost{
      .now = now_, .rtt = sender.smoothed, .bytes = event.bytes, .timed_out = false});
  sender.inflight -= std::min(event.bytes, sender.inflight);
  sender.again += event.bytes;
  try_send(event.which);
}

void Bottleneck::begin_count() {
  count_began_ = now_;
  for (Sender& sender : senders_) sender.counted = sender.delivered;
  for (Hop& hop : hops_) {
    hop.peak = 0;
    hop.samples.clear();
  }
}

const Bottleneck::Hop& Bottleneck::slowest() const {
  return *std::min_element(hops_.begin(), hops_.end(), [](const Hop& a, const Hop& b) {
    return a.options.bytes_per_second < b.options.bytes_per_second;
  });
}

double Bottleneck::share(size_t index) const {
  const Sender& sender = senders_[index];
  const double bytes = static_cast<double>(sender.delivered - sender.counted);
  return bytes / congestion::seconds(now_ - count_began_) / slowest().options.bytes_per_second;
}

double Bottleneck::utilisation() const {
  double sum = 0;
  for (size_t i = 0; i < senders_.size(); ++i) sum += share(i);
  return sum;
}

double Bottleneck::fairness() const {
  double sum = 0, squares = 0, count = 0;
  for (size_t i = 0; i < senders_.size(); ++i) {
    const SenderOptions& options = senders_[i].options;
    if (options.start > count_began_ || options.stop < now_) continue;
    const double rate = share(i);
    sum += rate;
    squares += rate * rate;
    ++count;
  }
  return squares == 0 ? 0 : sum * sum / (count * squares);
}

double Bottleneck::queue_packets(double quantile, size_t index) const {
  std::vector<float> sorted = hops_[index].samples;
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return static_cast<double>(sorted[at]) / options_.packet_bytes;
}

double Bottleneck::bdp_packets() const {
  return slowest().options.bytes_per_second * congestion::seconds(options_.base_rtt) /
         options_.packet_bytes;
}

}  // namespace urma::test
