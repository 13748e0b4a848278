// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/prometheus.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "apps/urma_stat/users.h"

namespace urma::apps::stat {
namespace {

// The samples of one name, which have to stand together below its description.
struct Family {
  std::string meaning;
  bool counter = false;
  std::vector<std::string> samples;
};

class Families {
 public:
  void add(const std::string& name, std::string_view meaning, bool counter,
           const std::string& labels, const std::string& value) {
    const auto [found, made] = index_.try_emplace(name, families_.size());
    if (made) {
      families_.push_back({.meaning = {}, .counter = counter, .samples = {}});
      for (const char one : meaning) families_.back().meaning += one == '\\' ? '/' : one;
      names_.push_back(name);
    }
    families_[found->second].samples.push_back(fmt::format("{}{{{}}} {}\n", name, labels, value));
  }

  std::string text() const {
    std::string out;
    for (size_t i = 0; i < families_.size(); ++i) {
      const Family& one = families_[i];
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", names_[i], one.meaning, names_[i],
                         one.counter ? "counter" : "gauge");
      for (const std::string& sample : one.samples) out += sample;
    }
    return out;
  }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::string> names_;
  std::vector<Family> families_;
};

std::string label(std::string_view name, std::string_view value) {
  std::string out = fmt::format("{}=\"", name);
  for (const char one : value) {
    if (one == '\\' || one == '"') out += '\\';
    out += one;
  }
  return out + '"';
}

std::string labels_of(const ObservedDevice& device) {
  return fmt::format("{},{},{},{},{}", label("user", user_name(device.uid)),
                     label("pid", std::to_string(device.pid)), label("process", device.process),
                     label("device", device.device), label("endpoint", device.endpoint));
}

// The page of another process may contain anything.
bool is_name(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !text.empty() && text.find_first_not_of(letters) == text.npos;
}

std::string seconds(Duration time) {
  return fmt::format("{:.9g}", static_cast<double>(time.count()) / 1e9);
}

// Adds the values of a channel that are known.
class Channel {
 public:
  Channel(Families& families, const ObservedDevice& device, const ObservedChannel& channel)
      : families_(families),
        labels_(fmt::format("{},{},{}", labels_of(device), label("peer", channel.peer),
                            label("path", std::to_string(channel.path)))) {}

  void gauge(const char* name, const char* meaning, const std::string& value) {
    families_.add(std::string("urma_channel_") + name, meaning, false, labels_, value);
  }
  void gauge(const char* name, const char* meaning, std::optional<Duration> time) {
    if (time) gauge(name, meaning, seconds(*time));
  }
  void gauge(const char* name, const char* meaning, std::optional<uint64_t> value) {
    if (value) gauge(name, meaning, std::to_string(*value));
  }
  void counter(const char* name, const char* meaning, std::optional<uint64_t> value) {
    if (!value) return;
    families_.add(fmt::format("urma_channel_{}_total", name), meaning, true, labels_,
                  std::to_string(*value));
  }

 private:
  Families& families_;
  const std::string labels_;
};

void add_channel(Families& families, const ObservedDevice& device, const ObservedChannel& one) {
  Channel channel(families, device, one);
  channel.gauge("up", "Whether the channel, or this path of it, carries packets.",
                std::string(one.state == "up" ? "1" : "0"));
  channel.gauge("rtt_seconds", "The smoothed round-trip time.", one.rtt);
  channel.gauge("least_rtt_seconds", "The least round-trip time.", one.least_rtt);
  channel.gauge("age_seconds", "The time since the channel was made.", one.age);
  channel.gauge("window_bytes", "How much may be in flight.", one.window_bytes);
  channel.gauge("inflight_bytes", "How much is in flight.", one.inflight_bytes);
  channel.gauge("pace_bytes_per_second", "The pace, if packets are paced.", one.bytes_per_second);
  channel.counter("sent_packets", "Data packets sent on this path.", one.sent);
  channel.counter("lost_packets", "Data packets of this path that were believed lost.", one.lost);
  channel.counter("acknowledged_bytes", "Bytes of data packets that the peer acknowledged.",
                  one.acknowledged_bytes);
  channel.counter("retransmitted_packets", "Packets of the channel that were sent again.",
                  one.retransmitted);
  channel.counter("spurious_packets", "Packets that were believed lost and arrived.", one.spurious);
  channel.counter("not_ready", "Answers of the peer that it was not ready.", one.not_ready);
}

void add_device(Families& families, const Row& row) {
  const ObservedDevice& device = row.device;
  const std::string labels = labels_of(device);
  families.add("urma_device_opened_seconds", "When the device was opened, in seconds since 1970.",
               false, labels, std::to_string(device.opened));
  if (row.age_seconds) {
    families.add("urma_device_report_age_seconds", "How old the values of the device are.", false,
                 labels, fmt::format("{:.3f}", *row.age_seconds));
  }
  for (const ObservedMetric& metric : device.metrics) {
    if (metric.value == UINT64_MAX || !is_name(metric.name)) continue;
    const bool counter = metric.window != "now";
    families.add(fmt::format("urma_{}{}", metric.name, counter ? "_total" : ""), metric.meaning,
                 counter, labels, std::to_string(metric.value));
  }
  if (!device.channels) return;
  for (const ObservedChannel& one : device.channels->shown) add_channel(families, device, one);
}

}  // namespace

std::string prometheus_text(const Look& look) {
  Families families;
  families.add("urma_devices", "Open devices that this exporter sees.", false, "",
               std::to_string(look.rows.size()));
  for (const Row& row : look.rows) add_device(families, row);
  return families.text();
}

}  // namespace urma::apps::stat
