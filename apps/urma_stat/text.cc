#include "apps/urma_stat/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <span>

namespace urma::stat {
namespace {

constexpr size_t widest_device = 32;

// What grows, in the table: some metrics together.
struct Column {
  std::string_view title;
  std::span<const std::string_view> metrics;
};
constexpr std::string_view works[] = {"works"};
constexpr std::string_view done[] = {"completions"};
constexpr std::string_view executed[] = {"executed"};
constexpr std::string_view unknown[] = {"unknown"};
constexpr std::string_view refused[] = {"refused"};
constexpr std::string_view resent[] = {"retransmitted"};
constexpr std::string_view dropped[] = {"dropped_icrc", "dropped_malformed",
                                        "dropped_unknown_channel", "dropped_other"};
constexpr Column columns[] = {{"works", works},     {"done", done},       {"executed", executed},
                              {"unknown", unknown}, {"refused", refused}, {"resent", resent},
                              {"dropped", dropped}};

// "0", "12.3", "456k", "1.20M".
std::string short_number(double value) {
  constexpr const char* units[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

std::string shown(std::optional<double> value) { return value ? short_number(*value) : "-"; }

// "45 s", "12 min", "3 h", "5 d".
std::string span(int64_t seconds) {
  if (seconds < 100) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < 100 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 100 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86'400);
}

// Of several metrics together; nothing if the device has none of them.
template <class One>
std::optional<double> sum(std::span<const std::string_view> metrics, One&& one) {
  std::optional<double> out;
  for (const std::string_view metric : metrics) {
    if (const std::optional<double> value = one(metric)) out = out.value_or(0) + *value;
  }
  return out;
}

std::string cell(std::string_view text, size_t width) {
  if (text.size() <= width) return fmt::format("{:<{}}", text, width);
  return fmt::format("{}~", text.substr(0, width - 1));
}

// A value as it is. The largest number stands for none.
std::string whole(uint64_t value) {
  return value == UINT64_MAX ? "none" : fmt::format("{}", value);
}

std::string facts(const Row& row) {
  const ObservedDevice& device = row.device;
  std::string out = fmt::format("process      {} {}, since {}\n", device.pid, device.process,
                                date(device.process_started));
  out += fmt::format("device       {}, since {}\n", device.device, date(device.opened));
  out += fmt::format("             {}\n", device.description);
  out += fmt::format("endpoint     {}   EID {}\n", device.endpoint, device.eid);
  const std::string age = row.age_seconds ? fmt::format("{:.1f} s ago", *row.age_seconds)
                                          : "of its beginning: it has not been run yet";
  return out + fmt::format("last report  {}\n", age);
}

}  // namespace

std::string date(int64_t seconds) {
  if (seconds == 0) return "?";
  const time_t time = seconds;
  struct tm local {};
  localtime_r(&time, &local);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

std::string table(const Look& look, bool rates) {
  if (look.rows.empty()) return "No device of this user is open here.\n";
  size_t width = 6;
  for (const Row& row : look.rows) width = std::max(width, row.device.device.size());
  width = std::min(width, widest_device);
  std::string out = fmt::format("{:>7} {:<15} {:<{}} {:>6} {:>5}", "pid", "process", "device",
                                width, "open", "peers");
  for (const Column& column : columns) {
    out += fmt::format(" {:>10}", std::string(column.title) + (rates ? "/s" : ""));
  }
  out += "\n";
  for (const Row& row : look.rows) {
    out += fmt::format("{:>7} {} {} {:>6} {:>5}", row.device.pid, cell(row.device.process, 15),
                       cell(row.device.device, width), span(look.time - row.device.opened),
                       shown(row.value("peers")));
    for (const Column& column : columns) {
      const auto value = sum(column.metrics, [&](std::string_view metric) {
        return rates ? row.rate(metric) : row.value(metric);
      });
      out += fmt::format(" {:>10}", shown(value));
    }
    out += "\n";
  }
  return out;
}

std::string details(const Look& look, bool rates) {
  std::string out;
  for (const Row& row : look.rows) {
    if (!out.empty()) out += "\n";
    out += facts(row);
    const std::string* part = nullptr;
    for (size_t i = 0; i < row.device.metrics.size(); ++i) {
      const ObservedMetric& metric = row.device.metrics[i];
      if (part == nullptr || *part != metric.part) out += "\n" + metric.part + "\n";
      part = &metric.part;
      out += fmt::format("  {:<24} {:>14} ", metric.name, whole(metric.value));
      if (rates) out += fmt::format("{:>7}/s ", shown(row.rates[i]));
      out += fmt::format("{:<11} {:<10}  {}\n", metric.unit, metric.window, metric.meaning);
    }
  }
  return out;
}

std::string metrics_text() {
  std::string out;
  std::string_view part;
  for (const Metric& metric : all_metrics()) {
    if (part != metric.part) out += fmt::format("{}{}\n", out.empty() ? "" : "\n", metric.part);
    part = metric.part;
    out += fmt::format("  {:<24} {:<11} {:<10}  {}\n", metric.name, metric.unit,
                       name(metric.window), metric.meaning);
  }
  return out;
}

}  // namespace urma::stat
