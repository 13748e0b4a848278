// SPDX-License-Identifier: Apache-2.0
#include "tests/congestion/baselines.h"

#include <algorithm>
#include <cmath>

#include "congestion/arithmetic.h"

namespace urma::test {
namespace {

using congestion::Acknowledged;
using congestion::Allowance;
using congestion::duration_of;
using congestion::Lost;
using congestion::seconds;
using congestion::Sent;
using congestion::Settings;
using congestion::Signal;

// A window in bytes, which is paced over the base round trip if `paced`.
class Windowed : public Baseline {
 public:
  Windowed(const Settings& settings, Duration base_rtt, double packets)
      : packet_(settings.packet_bytes),
        link_(settings.bytes_per_second),
        base_(seconds(base_rtt)),
        limit_(static_cast<double>(settings.limit_bytes)),
        seed_(settings.seed) {
    window_ = packets * packet_;
  }

  void handle(const Lost& event) override {
    if (event.now < recovery_until_) return;
    recovery_until_ = event.now + event.rtt;
    set_window(window_ / 2);
  }
  void handle(const congestion::Notified&) override {}
  void handle(const congestion::Spurious&) override {}
  Allowance allowance(Time) const override { return {window_bytes(), next_}; }
  uint64_t window_bytes() const override {
    return static_cast<uint64_t>(std::max(window_, packet_));
  }

 protected:
  void pace(const Sent& event, double bytes_per_second) {
    const double gap = event.bytes / bytes_per_second;
    const double jitter =
        window_ < packet_ ? 0.5 + congestion::chance_of(seed_, event.number) : 1.0;
    next_ = std::max(next_, event.now) + duration_of(gap * jitter);
  }
  void set_window(double bytes) { window_ = std::clamp(bytes, packet_ / 1024, limit_); }

  double packet_;
  double link_;  // bytes per second
  double base_;  // seconds
  double limit_;
  double window_;
  Time next_ = Time::min();

 private:
  uint32_t seed_;
  Time recovery_until_ = Time::min();
};

// ---- Swift (SIGCOMM 2020)

constexpr double swift_base_target = 1.25;             // base round trips
constexpr double swift_range = 5;                      // base round trips
constexpr double swift_least = 0.1, swift_most = 100;  // packets
constexpr double swift_increase = 1, swift_beta = 0.8, swift_most_cut = 0.5;

class Swift final : public Windowed {
 public:
  Swift(const Settings& settings, Duration base_rtt)
      : Windowed(settings, base_rtt,
                 settings.bytes_per_second * seconds(base_rtt) / settings.packet_bytes) {}

  Signal request(const Sent& event) override {
    if (window_ < packet_) pace(event, window_ / std::max(rtt_, base_));
    return {};
  }
  void handle(const Acknowledged& event) override {
    rtt_ = seconds(event.rtt);
    const double delay = seconds(event.sample);
    const double target = base_ * swift_target(window_ / packet_);
    const double packets = static_cast<double>(event.bytes) / packet_;
    if (delay < target) {
      const double step = swift_increase * packets * packet_;
      set_window(window_ + (window_ >= packet_ ? step * packet_ / window_ : step));
    } else if (event.now >= cut_until_) {
      cut_until_ = event.now + event.rtt;
      set_window(window_ * std::max(1 - swift_beta * (delay - target) / delay, 1 - swift_most_cut));
    }
  }
  using Windowed::handle;

 private:
  double rtt_ = 0;
  Time cut_until_ = Time::min();
};

// ---- HPCC (SIGCOMM 2019)

constexpr double hpcc_eta = 0.95;
constexpr int hpcc_stages = 5;
constexpr double hpcc_increase = 0.08;  // packets

class Hpcc final : public Windowed {
 public:
  Hpcc(const Settings& settings, Duration base_rtt)
      : Windowed(settings, base_rtt,
                 settings.bytes_per_second * seconds(base_rtt) / settings.packet_bytes),
        reference_(window_) {}

  Signal request(const Sent& event) override {
    sent_ = event.number;
    pace(event, std::min(window_ / base_, link_));
    return {};
  }
  // A packet may leave as long as the window is not full, and the pacing bounds the rate.
  Allowance allowance(Time) const override {
    return {static_cast<uint64_t>(std::ceil(window_ / packet_) * packet_), next_};
  }
  void read(const Stamps& stamps) override { now_ = stamps; }
  void handle(const Acknowledged&) override {
    ++acknowledged_;
    if (last_.count == now_.count) measure();
    last_ = now_;
    // Once in a round trip, the reference becomes the window.
    const bool update = acknowledged_ > update_at_;
    if (use_ >= hpcc_eta || stage_ >= hpcc_stages) {
      const double window = reference_ / (use_ / hpcc_eta) + hpcc_increase * packet_;
      set_hpcc_window(window, update, 0);
    } else {
      set_hpcc_window(reference_ + hpcc_increase * packet_, update, stage_ + 1);
    }
    if (update) update_at_ = sent_;
  }
  using Windowed::handle;

 private:
  void measure() {
    double most = 0, over = base_;
    for (uint32_t i = 0; i < now_.count; ++i) {
      const Stamp& before = last_.of[i];
      const Stamp& after = now_.of[i];
      const double time = seconds(after.departs - before.departs);
      if (after.port != before.port || time <= 0) continue;
      const double rate = static_cast<double>(after.sent_bytes - before.sent_bytes) / time;
      const auto queue = static_cast<double>(std::min(after.queue_bytes, before.queue_bytes));
      const double use = queue / (after.bytes_per_second * base_) + rate / after.bytes_per_second;
      if (use > most) {
        most = use;
        over = time;
      }
    }
    if (most == 0) return;
    const double weight = std::min(over, base_) / base_;
    use_ = (1 - weight) * use_ + weight * most;
  }
  void set_hpcc_window(double window, bool update, int stage) {
    set_window(std::min(window, link_ * base_));
    if (!update) return;
    reference_ = window_;
    stage_ = stage;
  }

  Stamps last_, now_;
  double use_ = 1;
  double reference_;
  int stage_ = 0;
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t update_at_ = 0;
};

// ---- RCP (IWQoS 2005)

constexpr double rcp_alpha = 0.4, rcp_beta = 0.226;
constexpr double rcp_first = 0.05;    // of the line rate
constexpr double rcp_least = 1e-3;    // of the line rate
constexpr double rcp_interval = 0.5;  // base round trips

class Rcp final : public Windowed {
 public:
  Rcp(const Settings& settings, Duration base_rtt) : Windowed(settings, base_rtt, 1) {}

  Signal request(const Sent& event) override {
    if (rate_ > 0) pace(event, rate_);
    return {};
  }
  void read(const Stamps& stamps) override {
    if (stamps.least_rate <= 0) return;
    rate_ = std::min(stamps.least_rate, link_);
    window_ = limit_;
  }
  void handle(const Acknowledged&) override {}
  using Windowed::handle;

 private:
  double rate_ = 0;
};

}  // namespace

double swift_target(double packets) {
  const double alpha = swift_range / (1 / std::sqrt(swift_least) - 1 / std::sqrt(swift_most));
  const double beta = -alpha / std::sqrt(swift_most);
  const double scaled = alpha / std::sqrt(packets) + beta;
  return swift_base_target + std::clamp(scaled, 0.0, swift_range);
}

RcpPort::RcpPort(double bytes_per_second, Duration base_rtt)
    : line_rate_(bytes_per_second),
      round_(seconds(base_rtt)),
      rate_(rcp_first * bytes_per_second) {}

double RcpPort::arrive(Time now, uint32_t bytes, uint64_t queue_bytes) {
  const Duration interval = duration_of(round_ * rcp_interval);
  if (interval_end_ == Time::min()) interval_end_ = now + interval;
  while (now >= interval_end_) {
    interval_end_ += interval;
    const double load = arrived_ / (round_ * rcp_interval);
    const double spare =
        rcp_alpha * (line_rate_ - load) - rcp_beta * static_cast<double>(queue_bytes) / round_;
    rate_ *= 1 + rcp_interval * spare / line_rate_;
    rate_ = std::clamp(rate_, rcp_least * line_rate_, line_rate_);
    arrived_ = 0;
  }
  arrived_ += bytes;
  return rate_;
}

std::unique_ptr<Baseline> make_baseline(std::string_view name, const Settings& settings,
                                        Duration base_rtt) {
  if (name == "swift") return std::make_unique<Swift>(settings, base_rtt);
  if (name == "hpcc") return std::make_unique<Hpcc>(settings, base_rtt);
  if (name == "rcp") return std::make_unique<Rcp>(settings, base_rtt);
  return nullptr;
}

}  // namespace urma::test
