// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "apps/urma_stat/columns.h"
#include "apps/urma_stat/users.h"

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

// "850ns", "12.3us", "1.20ms".
std::string short_time(std::optional<Duration> time) {
  if (!time) return "-";
  const auto ns = static_cast<double>(time->count());
  if (ns < 1e3) return fmt::format("{:.0f}ns", ns);
  const auto [scale, unit] = ns < 1e6   ? std::pair(1e3, "us")
                             : ns < 1e9 ? std::pair(1e6, "ms")
                                        : std::pair(1e9, "s");
  const double value = ns / scale;
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

struct Line {
  const Row& row;
  const ObservedChannel& channel;
  std::optional<double> rate;
};

// A channel is idle if it is up, none of its figures differs from 0, and its peer has sent no
// packet for a while.
bool idle(const Line& line) {
  constexpr Duration a_while = std::chrono::seconds(5);
  const ObservedChannel& one = line.channel;
  for (const auto& count :
       {one.inflight_bytes, one.lost, one.retransmitted, one.spurious, one.not_ready}) {
    if (count.value_or(0) != 0) return false;
  }
  return one.state == "up" && line.rate.value_or(0) <= 0 &&
         until_now(one.unheard, line.row).value_or(Duration{}) > a_while;
}

struct Lines {
  std::vector<Line> shown;
  size_t idle = 0;  // not shown
};

Lines lines_in(const Look& look, const PeersShown& how) {
  Lines out;
  for (const Row& row : look.rows) {
    if (!row.device.channels) continue;
    const std::vector<ObservedChannel>& channels = row.device.channels->shown;
    for (size_t i = 0; i < channels.size(); ++i) {
      const Line line{row, channels[i], row.channel_rates[i]};
      if (!how.all && idle(line)) {
        ++out.idle;
      } else {
        out.shown.push_back(line);
      }
    }
  }
  return out;
}

// Returns the address of a peer without the port that peers usually have; in a window its slot; and
// of a long IPv6 address the first group and the end.
std::string short_address(const std::string& text) {
  constexpr size_t longest = 20;
  const Result<Endpoint> peer = parse_endpoint(text);
  if (peer && in_window(peer->address)) {
    constexpr size_t slot_at = sizeof window_prefix + sizeof(uint64_t);
    uint32_t slot = 0;
    for (size_t i = slot_at; i < peer->address.bytes.size(); ++i) {
      slot = slot << 8 | static_cast<uint32_t>(peer->address.bytes[i]);
    }
    return fmt::format("slot {}", slot);
  }
  std::string out = text;
  const std::string port = fmt::format(":{}", ub_port);
  if (out.ends_with(port)) out.resize(out.size() - port.size());
  if (out.size() <= longest) return out;
  const size_t first = std::min(out.find(':'), longest / 3) + 1;
  const size_t end = out.find(':', out.size() - (longest - first - 1));
  return out.substr(0, first) + "~" + out.substr(std::min(end, out.size() - 1));
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
      any = any || (strip.cells.back() != "-" && !strip.cells.back().empty());
    }
    if (any) strips_.push_back(std::move(strip));
    if (any) fit(strips_.back());
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

  // Makes the table as wide as the room, in steps, the least important columns last. Returns a line
  // about the columns that were removed.
  std::string narrow(size_t room) {
    if (width_of(strips_) <= room) return "";
    shorten();
    std::string without;
    for (const std::string_view name :
         {"unheard", "pace", "sent", "cc", "from", "age", "least rtt", "lost", "in flight", "rtt",
          "window", "path", "spurious", "rnr"}) {
      if (width_of(strips_) <= room) break;
      if (remove(name)) without += fmt::format("{}{}", without.empty() ? "" : ", ", name);
    }
    return without.empty() ? "" : wrapped("too narrow for: ", without, room);
  }

  std::string text() const {
    if (!headed_) return lines_of(strips_);
    std::string out = title_line(strips_);
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (i == 0 || &lines_[i].row != &lines_[i - 1].row) out += heading(lines_[i].row);
      out += row_line(strips_, i);
    }
    return out;
  }

 private:
  static void fit(Strip& strip) {
    strip.width = strip.title.size();
    for (const std::string& cell : strip.cells) strip.width = std::max(strip.width, cell.size());
  }
  bool remove(std::string_view name) {
    return std::erase_if(strips_, [&](const Strip& strip) { return strip.name == name; }) > 0;
  }

  // Writes the process above its channels instead of beside each of them, and shortens titles and
  // addresses.
  void shorten() {
    headed_ = true;
    for (const char* const name : {"pid", "user", "process", "device"}) remove(name);
    constexpr std::pair<std::string_view, std::string_view> titles[] = {
        {"in flight", "flight"}, {"least rtt", "least"}, {"spurious", "spur"}};
    for (Strip& strip : strips_) {
      for (const auto& [from, to] : titles) {
        if (strip.name == from) strip.title = to;
      }
      for (std::string& cell : strip.cells) {
        if (strip.name == "peer" || strip.name == "from") cell = short_address(cell);
      }
      fit(strip);
    }
  }
  static std::string heading(const Row& row) {
    const std::string user =
        is_of_another_user(row) ? " of " + user_name(row.device.uid) : std::string();
    return fmt::format("{} {}{}, {}\n", row.device.pid, row.device.process, user,
                       row.device.device.substr(0, 40));
  }

  const std::vector<Line>& lines_;
  std::vector<Strip> strips_;
  bool headed_ = false;
};

// Returns whether any channel has several paths.
bool several_paths(const std::vector<Line>& lines) {
  return std::ranges::any_of(lines, [](const Line& line) { return line.channel.path > 0; });
}

void add_process(Table& table, const std::vector<Line>& lines) {
  table.add("pid", false, [](const Line& line) { return std::to_string(line.row.device.pid); });
  if (std::ranges::any_of(lines, [](const Line& line) { return is_of_another_user(line.row); })) {
    table.add("user", true, [](const Line& line) { return user_name(line.row.device.uid); });
  }
  table.add("device", true, [](const Line& line) { return line.row.device.device.substr(0, 24); });
}

Table table_of(const std::vector<Line>& lines) {
  Table table(lines);
  const bool paths = several_paths(lines);
  add_process(table, lines);
  table.add("peer", true, [](const Line& line) { return line.channel.peer; });
  if (paths) {
    table.add("from", true, [](const Line& line) { return line.channel.from; });
    table.add("path", false, [](const Line& line) { return std::to_string(line.channel.path); });
  }
  table.add("state", true, [](const Line& line) { return line.channel.state; });
  table.add("cc", true, [](const Line& line) {
    return line.channel.congestion + (line.channel.why.empty() ? "" : "*");
  });
  table.add("rate", false, [](const Line& line) { return shown(line.rate); });
  table.add("window", &ObservedChannel::window_bytes);
  table.add("in flight", &ObservedChannel::inflight_bytes);
  table.add("pace", &ObservedChannel::bytes_per_second);
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
    return age ? short_span(std::chrono::duration_cast<std::chrono::seconds>(*age).count()) : "-";
  });
  return table;
}

// Returns a line for each reason, with the number of lines of the table that it is about.
std::string reasons(const std::vector<Line>& lines, std::optional<size_t> room) {
  std::map<std::string, size_t> reasons;
  for (const Line& line : lines) {
    if (line.channel.why.empty()) continue;
    ++reasons[fmt::format("{} instead of {}: {}", line.channel.congestion,
                          line.row.device.congestion, line.channel.why)];
  }
  std::string out;
  for (const auto& [reason, count] : reasons) {
    const std::string rows = count > 1 ? fmt::format(" ({} rows)", count) : "";
    out += wrapped("* ", reason + rows, room);
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

json channel_json(const Row& row, const ObservedChannel& channel, std::optional<double> rate) {
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
          {"acknowledged_bytes", maybe_number(channel.acknowledged_bytes)},
          {"acknowledged_bytes_per_second", rate ? json(*rate) : json(nullptr)},
          {"retransmitted", maybe_number(channel.retransmitted)},
          {"spurious", maybe_number(channel.spurious)},
          {"not_ready", maybe_number(channel.not_ready)},
          {"unheard_seconds", maybe_seconds(until_now(channel.unheard, row))},
          {"channel_age_seconds", maybe_seconds(until_now(channel.age, row))}};
}

}  // namespace

std::string peers_table(const Look& look, const PeersShown& how) {
  const Lines lines = lines_in(look, how);
  std::string more = omissions(look);
  if (lines.idle > 0) {
    const bool one = lines.idle == 1;
    more = fmt::format("{} not shown, because {} idle; --all shows {}\n",
                       one ? "1 row is" : fmt::format("{} rows are", lines.idle),
                       one ? "it is" : "they are", one ? "it" : "them") +
           more;
  }
  if (lines.shown.empty() && lines.idle > 0) return more;
  if (lines.shown.empty()) return "No device that is shown here has a channel.\n" + more;
  Table table = table_of(lines.shown);
  const std::string note = how.room ? table.narrow(*how.room) : "";
  return table.text() + note + reasons(lines.shown, how.room) + more;
}

json peers_json(const Row& row) {
  if (!row.device.channels) return nullptr;
  json out = json::array();
  const std::vector<ObservedChannel>& channels = row.device.channels->shown;
  for (size_t i = 0; i < channels.size(); ++i) {
    out.push_back(channel_json(row, channels[i], row.channel_rates[i]));
  }
  return out;
}

}  // namespace urma::apps::stat
