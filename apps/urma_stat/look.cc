// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "apps/common/failure.h"

namespace urma::apps::stat {
namespace {

// A look may find values as old as this, and the next look newer ones. So the time between two
// reports may differ by this much from the time between two looks.
constexpr double report_seconds = 0.2;

// Devices report with times of the same clock.
Time monotonic() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string key(const ObservedDevice& device) {
  return fmt::format("{} {} {} {} {} {}", device.uid, device.pid, device.process_started,
                     device.opened, device.endpoint, device.device);
}

// Returns the rate of a channel whose counter was `before` in the previous look, if it is the same
// channel.
std::optional<double> rate_of(const ObservedChannel& channel, const ObservedDevice* before,
                              double seconds) {
  if (!channel.acknowledged_bytes) return std::nullopt;
  const auto now = static_cast<double>(*channel.acknowledged_bytes);
  if (before == nullptr) {
    const double age = channel.age ? seconds_of(*channel.age) : 0;
    return age > 0 ? std::optional(now / age) : std::nullopt;
  }
  if (!before->channels) return std::nullopt;
  for (const ObservedChannel& old : before->channels->shown) {
    if (old.peer != channel.peer || old.from != channel.from || old.path != channel.path) continue;
    if (!old.acknowledged_bytes || *old.acknowledged_bytes > *channel.acknowledged_bytes) break;
    return (now - static_cast<double>(*old.acknowledged_bytes)) / seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> Row::value(std::string_view metric) const {
  const uint64_t* found = device.find(metric);
  return found == nullptr ? std::nullopt : std::optional(static_cast<double>(*found));
}

std::optional<double> Row::rate(std::string_view metric) const {
  for (size_t i = 0; i < device.metrics.size(); ++i) {
    if (device.metrics[i].name == metric) return rates[i];
  }
  return std::nullopt;
}

bool Watcher::wanted(const ObservedDevice& device) const {
  if (user_ && device.uid != *user_) return false;
  return process_.empty() || std::to_string(device.pid) == process_ || device.process == process_;
}

Row Watcher::row(ObservedDevice device, double seconds) const {
  Row out{.device = std::move(device), .rates = {}, .age_seconds = {}, .channel_rates = {}};
  out.rates.resize(out.device.metrics.size());
  if (out.device.moment != Time{}) {
    out.age_seconds = std::max(0.0, seconds_of(monotonic() - out.device.moment));
  }
  const auto before = before_.find(key(out.device));
  const bool seen_before = before != before_.end();
  // A device that was idle has not reported for a while. All of its progress happened since the
  // previous look.
  const double between = seen_before
                             ? std::clamp(seconds_of(out.device.moment - before->second.moment),
                                          seconds - report_seconds, seconds + report_seconds)
                             : seconds;
  const double span = std::max(between, seconds / 2);
  if (out.device.channels) {
    for (const ObservedChannel& channel : out.device.channels->shown) {
      out.channel_rates.push_back(rate_of(channel, seen_before ? &before->second : nullptr, span));
    }
  }
  if (!seen_before) return out;
  for (size_t i = 0; i < out.rates.size(); ++i) {
    const ObservedMetric& metric = out.device.metrics[i];
    const uint64_t* old = before->second.find(metric.name);
    if (old == nullptr || metric.window == name(Metric::Window::now)) continue;
    const uint64_t grown = metric.value - std::min(*old, metric.value);
    out.rates[i] = static_cast<double>(grown) / span;
  }
  return out;
}

Look Watcher::look() {
  Result<Observed> seen = observe_all_devices();
  if (!seen) throw Failure(Exit::error, seen.error().message);
  const Time now = monotonic();
  const double seconds = seconds_of(now - std::exchange(looked_at_, now));
  Look out{.rows = {},
           .skipped = std::move(seen->skipped),
           .unread = seen->unread,
           .time = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count()};
  std::map<std::string, ObservedDevice> these;
  for (ObservedDevice& device : seen->devices) {
    if (!wanted(device)) continue;
    these.emplace(key(device), device);
    out.rows.push_back(row(std::move(device), seconds));
  }
  before_ = std::move(these);
  return out;
}

}  // namespace urma::apps::stat
