// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>

#include "apps/urma_stat/columns.h"
#include "apps/urma_stat/users.h"

namespace urma::apps::stat {
namespace {

constexpr size_t widest_device = 32;

// A column of the table: the sum of some counters.
struct Column {
  std::string_view title;
  std::span<const std::string_view> metrics;
};
constexpr std::string_view works[] = {"works"};
constexpr std::string_view done[] = {"completions"};
constexpr std::string_view executed[] = {"executed"};
constexpr std::string_view bytes[] = {"acknowledged_bytes", "copied_bytes", "carried_bytes"};
constexpr std::string_view unknown[] = {"unknown"};
constexpr std::string_view refused[] = {"refused"};
constexpr std::string_view resent[] = {"retransmitted"};
constexpr std::string_view dropped[] = {"dropped_icrc", "dropped_malformed",
                                        "dropped_unknown_channel", "dropped_other"};
constexpr Column columns[] = {{"works", works},   {"done", done},       {"executed", executed},
                              {"bytes", bytes},   {"unknown", unknown}, {"refused", refused},
                              {"resent", resent}, {"dropped", dropped}};

// Returns the sum of several metrics, or nothing if the device has none of them.
template <class One>
std::optional<double> sum(std::span<const std::string_view> metrics, One&& one) {
  std::optional<double> out;
  for (const std::string_view metric : metrics) {
    if (const std::optional<double> value = one(metric)) out = out.value_or(0) + *value;
  }
  return out;
}

std::vector<Strip> all_strips(const Look& look, bool rates) {
  size_t width = 6;
  for (const Row& row : look.rows) width = std::max(width, row.device.device.size());
  Strip pid{"pid", "pid", 7};
  Strip user{"user", "user", 8, true};
  Strip process{"process", "process", 15, true};
  Strip device{"device", "device", std::min(width, widest_device), true};
  Strip open{"open", "open", 6};
  Strip peers{"peers", "peers", 5};
  for (const Row& row : look.rows) {
    pid.cells.push_back(std::to_string(row.device.pid));
    user.cells.push_back(user_name(row.device.uid));
    process.cells.push_back(row.device.process);
    device.cells.push_back(row.device.device);
    open.cells.push_back(span(look.time - row.device.opened));
    peers.cells.push_back(shown(row.value("peers")));
  }
  std::vector<Strip> all = {pid, process, device, open, peers};
  if (std::ranges::any_of(look.rows, is_of_another_user)) all.insert(all.begin() + 1, user);
  for (const Column& column : columns) {
    Strip& strip =
        all.emplace_back(Strip{column.title, std::string(column.title) + (rates ? "/s" : ""), 10});
    for (const Row& row : look.rows) {
      strip.cells.push_back(shown(sum(column.metrics, [&](std::string_view metric) {
        return rates ? row.rate(metric) : row.value(metric);
      })));
    }
  }
  return all;
}

// Gives the room that is left to the columns whose texts were cut.
void widen_texts(std::vector<Strip>& strips, size_t room) {
  const auto longest_in = [](const Strip& strip) {
    size_t longest = strip.title.size();
    for (const std::string& cell : strip.cells) longest = std::max(longest, cell.size());
    return longest;
  };
  for (Strip& strip : strips) {
    if (strip.name == "pid") strip.width = std::min(strip.width, longest_in(strip));
  }
  for (Strip& strip : strips) {
    const size_t used = width_of(strips);
    if (!strip.text || used >= room) continue;
    const size_t wanted = std::min(longest_in(strip), widest_device);
    strip.width = std::clamp(wanted, strip.width, strip.width + room - used);
  }
}

// Removes and shortens columns until the table is as wide as the room. Columns that report problems
// are removed last. Returns a line about the removed columns; empty if there are none.
std::string narrow(std::vector<Strip>& strips, size_t room) {
  constexpr size_t widest_number = 5;  // "1.20M"
  constexpr size_t narrow_text = 8;
  const auto fits = [&] { return width_of(strips) <= room; };
  std::string without;
  const auto leave_out = [&](std::string_view name) {
    if (fits()) return;
    const auto removed =
        std::erase_if(strips, [&](const Strip& strip) { return strip.name == name; });
    if (removed == 0) return;
    without += fmt::format("{}{}", without.empty() ? "" : ", ", name);
  };
  const auto tighten = [&] {
    for (Strip& strip : strips) {
      if (!strip.text && strip.name != "pid") {
        strip.width = std::max(strip.title.size(), widest_number);
      }
    }
  };
  if (fits()) return "";
  tighten();
  leave_out("open");
  leave_out("peers");
  if (!fits()) {
    for (Strip& strip : strips) {
      if (strip.text) strip.width = std::min(strip.width, narrow_text);
      if (strip.title.ends_with("/s")) strip.title.resize(strip.title.size() - 2);
    }
    tighten();
  }
  for (const std::string_view name :
       {"done", "executed", "works", "bytes", "user", "process", "device"}) {
    leave_out(name);
  }
  widen_texts(strips, room);
  if (without.empty()) return "";
  const std::string note = "too narrow for: " + without + "\n";
  if (note.size() <= room + 1) return note;
  const auto commas = static_cast<size_t>(std::ranges::count(without, ','));
  return fmt::format("too narrow for {} columns\n", commas + 1);
}

// Formats a value without unit. The largest number stands for none.
std::string whole(uint64_t value) {
  return value == UINT64_MAX ? "none" : fmt::format("{}", value);
}

std::string facts(const Row& row, std::optional<size_t> room) {
  const ObservedDevice& device = row.device;
  const std::string user =
      is_of_another_user(row) ? fmt::format(" of {}", user_name(device.uid)) : std::string();
  std::string out = fmt::format("process      {} {}{}, since {}\n", device.pid, device.process,
                                user, date(device.process_started));
  out += fmt::format("device       {}, since {}\n", device.device, date(device.opened));
  constexpr size_t indent = 13;
  out += wrapped(std::string(indent, ' '), device.description, room, indent);
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

std::string table(const Look& look, bool rates, std::optional<size_t> room) {
  if (look.rows.empty()) {
    return fmt::format("No device of {} user is open here.\n", geteuid() == 0 ? "any" : "this");
  }
  std::vector<Strip> strips = all_strips(look, rates);
  const std::string note = room ? narrow(strips, *room) : "";
  return lines_of(strips) + note;
}

std::optional<double> bytes_rate(const Row& row) {
  return sum(bytes, [&](std::string_view metric) { return row.rate(metric); });
}

std::string details(const Look& look, bool rates, bool all, std::optional<size_t> room) {
  constexpr size_t least_room = 110;  // with the windows of the metrics
  const bool narrow = room && *room < least_room;
  std::string out;
  for (const Row& row : look.rows) {
    if (!out.empty()) out += "\n";
    out += facts(row, room);
    const std::string* part = nullptr;
    size_t zeros = 0;
    for (size_t i = 0; i < row.device.metrics.size(); ++i) {
      const ObservedMetric& metric = row.device.metrics[i];
      if (metric.value == 0 && !all) {
        ++zeros;
        continue;
      }
      if (part == nullptr || *part != metric.part) out += "\n" + metric.part + "\n";
      part = &metric.part;
      std::string line = fmt::format("  {:<24} {:>14} ", metric.name, whole(metric.value));
      if (rates) line += fmt::format("{:>7}/s ", shown(row.rates[i]));
      line += fmt::format("{:<11} ", metric.unit);
      if (!narrow) line += fmt::format("{:<10}  ", metric.window);
      const size_t indent = line.size();
      out += wrapped(std::move(line), metric.meaning, room, indent);
    }
    if (zeros > 0) out += fmt::format("\n{} counters are 0; --all shows them\n", zeros);
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

}  // namespace urma::apps::stat
