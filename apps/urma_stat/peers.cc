#include "apps/urma_stat/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "apps/urma_stat/columns.h"

namespace urma::apps::stat {
namespace {

using nlohmann::json;
using Number = std::optional<uint64_t> ObservedChannel::*;
using Span = std::optional<Duration> ObservedChannel::*;

// The times of a channel are those of the report, which an idle device made long ago.
std::optional<Duration> until_now(std::optional<Duration> time, const Row& row) {
  if (!time || !row.age_seconds) return time;
  return *time +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*row.age_seconds));
}

// "850 ns", "12.3 us", "1.20 ms".
std::string short_time(std::optional<Duration> time) {
  if (!time) return "-";
  const auto ns = static_cast<double>(time->count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  const auto [scale, unit] = ns < 1e6   ? std::pair(1e3, "us")
                             : ns < 1e9 ? std::pair(1e6, "ms")
                                        : std::pair(1e9, "s");
  const double value = ns / scale;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

struct Line {
  const Row& row;
  const ObservedChannel& channel;
};

std::vector<Line> lines_in(const Look& look) {
  std::vector<Line> out;
  for (const Row& row : look.rows) {
    if (!row.device.channels) continue;
    for (const ObservedChannel& channel : row.device.channels->shown) {
      out.push_back({row, channel});
    }
  }
  return out;
}

// A table that is being put together. A column in which no line has a value is not added.
class Table {
 public:
  explicit Table(const std::vector<Line>& lines) : lines_(lines) {}

  void add(std::string_view title, bool text, const std::function<std::string(const Line&)>& of) {
    Strip strip{title, std::string(title), title.size(), text};
    bool any = false;
    for (const Line& line : lines_) {
      strip.cells.push_back(of(line));
      strip.width = std::max(strip.width, strip.cells.back().size());
      any = any || (strip.cells.back() != "-" && !strip.cells.back().empty());
    }
    if (any) strips_.push_back(std::move(strip));
  }
  void add(std::string_view title, Number number) {
    add(title, false, [number](const Line& line) {
      const auto value = line.channel.*number;
      return shown(value ? std::optional(static_cast<double>(*value)) : std::nullopt);
    });
  }
  void add(std::string_view title, Span time) {
    add(title, false, [time](const Line& line) { return short_time(line.channel.*time); });
  }

  // Removes columns, the least important ones first. Returns a line about them.
  std::string narrow(size_t room) {
    std::string without;
    for (const std::string_view name :
         {"unheard", "least rtt", "sent", "from", "age", "device", "rtt", "in flight", "path"}) {
      if (width_of(strips_) <= room) break;
      if (std::erase_if(strips_, [&](const Strip& strip) { return strip.name == name; }) == 0) {
        continue;
      }
      without += fmt::format("{}{}", without.empty() ? "" : ", ", name);
    }
    return without.empty() ? "" : "too narrow for: " + without + "\n";
  }
  const std::vector<Strip>& strips() const { return strips_; }

 private:
  const std::vector<Line>& lines_;
  std::vector<Strip> strips_;
};

// Returns whether any channel has several paths.
bool several_paths(const std::vector<Line>& lines) {
  return std::ranges::any_of(lines, [](const Line& line) { return line.channel.path > 0; });
}

Table table_of(const std::vector<Line>& lines) {
  Table table(lines);
  const bool paths = several_paths(lines);
  table.add("pid", false, [](const Line& line) { return std::to_string(line.row.device.pid); });
  table.add("device", true, [](const Line& line) { return line.row.device.device.substr(0, 24); });
  table.add("peer", true, [](const Line& line) { return line.channel.peer; });
  if (paths) {
    table.add("from", true, [](const Line& line) { return line.channel.from; });
    table.add("path", false, [](const Line& line) { return std::to_string(line.channel.path); });
  }
  table.add("state", true, [](const Line& line) { return line.channel.state; });
  table.add("cc", true, [](const Line& line) {
    return line.channel.congestion + (line.channel.why.empty() ? "" : "*");
  });
  table.add("window", &ObservedChannel::window_bytes);
  table.add("in flight", &ObservedChannel::inflight_bytes);
  table.add("B/s", &ObservedChannel::bytes_per_second);
  table.add("rtt", &ObservedChannel::rtt);
  table.add("least rtt", &ObservedChannel::least_rtt);
  table.add("sent", &ObservedChannel::sent);
  table.add("lost", &ObservedChannel::lost);
  table.add("resent", &ObservedChannel::retransmitted);
  table.add("spurious", &ObservedChannel::spurious);
  table.add("rnr", &ObservedChannel::not_ready);
  table.add("unheard", false,
            [](const Line& line) { return short_time(until_now(line.channel.unheard, line.row)); });
  table.add("age", false, [](const Line& line) {
    const auto age = until_now(line.channel.age, line.row);
    return age ? span(std::chrono::duration_cast<std::chrono::seconds>(*age).count()) : "-";
  });
  return table;
}

// Returns a line for each reason, with the number of lines of the table that it is about.
std::string reasons(const std::vector<Line>& lines) {
  std::map<std::string, size_t> reasons;
  for (const Line& line : lines) {
    if (line.channel.why.empty()) continue;
    ++reasons[fmt::format("{} instead of {}: {}", line.channel.congestion,
                          line.row.device.congestion, line.channel.why)];
  }
  std::string out;
  for (const auto& [reason, count] : reasons) {
    out += fmt::format("* {}{}\n", reason, count > 1 ? fmt::format(" ({} rows)", count) : "");
  }
  return out;
}

std::string omissions(const Look& look) {
  std::string out;
  for (const Row& row : look.rows) {
    const ObservedDevice& device = row.device;
    if (!device.channels) {
      out += fmt::format("process {} {}: its version of the library does not report channels\n",
                         device.pid, device.process);
    } else if (device.channels->more > 0) {
      out += fmt::format("process {} {}: and {} more channels, which its page has no room for\n",
                         device.pid, device.process, device.channels->more);
    }
  }
  return out;
}

json maybe_number(std::optional<uint64_t> value) { return value ? json(*value) : json(nullptr); }
json maybe_seconds(std::optional<Duration> time) {
  return time ? json(std::chrono::duration<double>(*time).count()) : json(nullptr);
}

json channel_json(const Row& row, const ObservedChannel& channel) {
  return {{"peer", channel.peer},
          {"from", channel.from},
          {"path", channel.path},
          {"state", channel.state},
          {"congestion", channel.congestion},
          {"congestion_asked",
           row.device.congestion.empty() ? json(nullptr) : json(row.device.congestion)},
          {"why", channel.why},
          {"window_bytes", maybe_number(channel.window_bytes)},
          {"inflight_bytes", maybe_number(channel.inflight_bytes)},
          {"bytes_per_second", maybe_number(channel.bytes_per_second)},
          {"rtt_seconds", maybe_seconds(channel.rtt)},
          {"least_rtt_seconds", maybe_seconds(channel.least_rtt)},
          {"sent", maybe_number(channel.sent)},
          {"lost", maybe_number(channel.lost)},
          {"retransmitted", maybe_number(channel.retransmitted)},
          {"spurious", maybe_number(channel.spurious)},
          {"not_ready", maybe_number(channel.not_ready)},
          {"unheard_seconds", maybe_seconds(until_now(channel.unheard, row))},
          {"channel_age_seconds", maybe_seconds(until_now(channel.age, row))}};
}

}  // namespace

std::string peers_table(const Look& look, std::optional<size_t> room) {
  const std::vector<Line> lines = lines_in(look);
  if (lines.empty()) return "No device that is shown here has a channel.\n" + omissions(look);
  Table table = table_of(lines);
  const std::string note = room ? table.narrow(*room) : "";
  return lines_of(table.strips()) + note + reasons(lines) + omissions(look);
}

json peers_json(const Row& row) {
  if (!row.device.channels) return nullptr;
  json out = json::array();
  for (const ObservedChannel& channel : row.device.channels->shown) {
    out.push_back(channel_json(row, channel));
  }
  return out;
}

}  // namespace urma::apps::stat
