// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "apps/urma_stat/users.h"

namespace urma::apps::stat {
namespace {

// The series of one name, which have to stand together below its description.
struct Family {
  std::string meaning;
  bool counter = false;
  std::vector<std::string> series;  // labels and value of each
};

// Returns the text with a backslash before each of these characters, and an end of line as such a
// pair, too.
std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char one : text) {
    if (one == '\n') {
      out += "\\n";
      continue;
    }
    if (characters.find(one) != characters.npos) out += '\\';
    out += one;
  }
  return out;
}

class Families {
 public:
  // Returns false, and adds nothing, if there is such a series. Prometheus refuses a text that has
  // a series twice, with everything that is in it.
  bool add(const std::string& name, std::string_view meaning, bool counter,
           const std::string& labels, const std::string& value) {
    if (!present_.insert(name + "{" + labels).second) return false;
    const auto [found, made] = index_.try_emplace(name, families_.size());
    if (made) {
      families_.push_back({.meaning = escaped(meaning, "\\"), .counter = counter, .series = {}});
      names_.push_back(name);
    }
    const std::string braces = labels.empty() ? "" : "{" + labels + "}";
    families_[found->second].series.push_back(braces + " " + value);
    bytes_ += name.size() + braces.size() + value.size();
    return true;
  }

  // About the size of the text.
  size_t bytes() const { return bytes_; }

  std::string text() const {
    std::string out;
    for (size_t i = 0; i < families_.size(); ++i) {
      const Family& one = families_[i];
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", names_[i], one.meaning, names_[i],
                         one.counter ? "counter" : "gauge");
      for (const std::string& series : one.series) out += names_[i] + series + "\n";
    }
    return out;
  }

 private:
  std::map<std::string, size_t> index_;
  std::set<std::string> present_;
  std::vector<std::string> names_;
  std::vector<Family> families_;
  size_t bytes_ = 0;
};

std::string label(std::string_view name, std::string_view value) {
  constexpr size_t most_bytes = 500;
  return fmt::format("{}=\"{}\"", name, escaped(value.substr(0, most_bytes), "\\\""));
}

std::string labels_of(const ObservedDevice& device) {
  return fmt::format("{},{},{},{},{}", label("user", user_name(device.uid)),
                     label("pid", std::to_string(device.pid)), label("process", device.process),
                     label("device", device.device), label("endpoint", device.endpoint));
}

const Metric* find_metric(std::string_view name) {
  for (const Metric& metric : all_metrics()) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

// The page of another process may contain anything. Returns whether a metric of it may become a
// family: it is known here, or its name is not one that this exporter gives to something else.
bool may_be_shown(const ObservedMetric& metric) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const std::string_view name = metric.name;
  if (find_metric(name) != nullptr) return true;
  if (name.empty() || name.find_first_not_of(letters) != name.npos) return false;
  for (const std::string_view ours : {"channel_", "device_", "devices", "pages_"}) {
    if (name.starts_with(ours)) return false;
  }
  return !name.ends_with("_total");
}

std::string seconds(Duration time) {
  return fmt::format("{:.9g}", static_cast<double>(time.count()) / 1e9);
}

// Adds the values of a channel that are known.
class Channel {
 public:
  Channel(Families& families, const std::string& device_labels, const ObservedChannel& channel)
      : families_(families),
        labels_(fmt::format("{},{},{}", device_labels, label("peer", channel.peer),
                            label("path", std::to_string(channel.path)))) {}

  // Returns false if the channel was added before.
  bool add_state(std::string_view state) {
    bool added = gauge("up", "Whether the channel, or this path of it, carries packets.",
                       std::string(state == "up" ? "1" : "0"));
    std::vector<std::string_view> states = {"up", "silent", "lost"};
    if (std::ranges::find(states, state) == states.end()) states.push_back(state);
    for (const std::string_view one : states) {
      families_.add("urma_channel_state",
                    "1 for the state of the channel or path, 0 for the other states: up, silent "
                    "(the peer's process reads nothing), lost (the path does not answer).",
                    false, labels_ + "," + label("state", one), one == state ? "1" : "0");
    }
    return added;
  }
  bool gauge(const char* name, const char* meaning, const std::string& value) {
    return families_.add(std::string("urma_channel_") + name, meaning, false, labels_, value);
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

// Returns false if the device has another channel or path with the same labels.
bool add_channel(Families& families, const std::string& device_labels, const ObservedChannel& one) {
  Channel channel(families, device_labels, one);
  if (!channel.add_state(one.state)) return false;
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
  return true;
}

// Adds the metrics of a page. Returns how many it left out.
size_t add_metrics(Families& families, const ObservedDevice& device, const std::string& labels) {
  size_t left_out = 0;
  for (const ObservedMetric& metric : device.metrics) {
    if (metric.value == UINT64_MAX) continue;
    if (!may_be_shown(metric)) {
      ++left_out;
      continue;
    }
    const Metric* const known = find_metric(metric.name);
    const bool counter = metric.window != name(Metric::Window::now);
    const bool added = families.add(fmt::format("urma_{}{}", metric.name, counter ? "_total" : ""),
                                    known != nullptr ? known->meaning : metric.meaning, counter,
                                    labels, std::to_string(metric.value));
    left_out += added ? 0 : 1;
  }
  return left_out;
}

// Adds a device, and the number of the channels and series that it left out.
void add_device(Families& families, const Row& row) {
  constexpr const char* opened = "urma_device_opened_seconds";
  constexpr const char* opened_meaning = "When the device was opened, in seconds since 1970.";
  const ObservedDevice& device = row.device;
  // Processes of two containers may agree in everything, also in their PIDs.
  std::string labels = labels_of(device);
  const std::string value = std::to_string(device.opened);
  for (int copy = 2; !families.add(opened, opened_meaning, false, labels, value); ++copy) {
    labels = labels_of(device) + "," + label("copy", std::to_string(copy));
  }
  if (row.age_seconds) {
    families.add("urma_device_report_age_seconds", "How old the values of the device are.", false,
                 labels, fmt::format("{:.3f}", *row.age_seconds));
  }
  const size_t metrics_left_out = add_metrics(families, device, labels);
  uint64_t channels_left_out = device.channels ? device.channels->more : 0;
  if (device.channels) {
    for (const ObservedChannel& one : device.channels->shown) {
      channels_left_out += add_channel(families, labels, one) ? 0 : 1;
    }
    families.add("urma_device_channels_left_out",
                 "Channels of the device that are not here: its page has no room for them.", false,
                 labels, std::to_string(channels_left_out));
  }
  families.add("urma_device_metrics_left_out",
               "Metrics of the device's page that are not here, because of their names.", false,
               labels, std::to_string(metrics_left_out));
}

}  // namespace

std::string prometheus_text(const Look& look, size_t most_bytes) {
  Families families;
  families.add("urma_devices", "Open devices that this exporter sees.", false, "",
               std::to_string(look.rows.size()));
  families.add("urma_pages_left_out",
               "Pages of devices that this exporter cannot read; its stderr says why.", false, "",
               std::to_string(look.unread));
  // Other users may have many and large pages, so they come last.
  std::vector<const Row*> rows;
  for (const Row& row : look.rows) rows.push_back(&row);
  std::ranges::stable_partition(rows, [](const Row* row) { return !is_of_another_user(*row); });
  size_t left_out = 0;
  for (const Row* const row : rows) {
    if (families.bytes() < most_bytes) {
      add_device(families, *row);
    } else {
      ++left_out;
    }
  }
  families.add("urma_devices_left_out", "Devices that are not here, because there are too many.",
               false, "", std::to_string(left_out));
  return families.text();
}

}  // namespace urma::apps::stat
