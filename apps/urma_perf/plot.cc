// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/urma_perf/chart.h"

namespace urma::apps::perf {
namespace {

// The results of one test on one device, which share a colour.
struct Group {
  std::string name;
  std::vector<const Result*> results;  // by rising size
};

std::vector<Group> groups_of(const std::vector<Result>& results) {
  std::vector<Group> groups;
  for (const Result& result : results) {
    std::string name = fmt::format("{} {}", result.what.test->name, result.device);
    if (!result.flows.empty()) name += fmt::format(" {} {}", result.traffic, result.processes);
    auto found = std::ranges::find(groups, name, &Group::name);
    if (found == groups.end()) found = groups.insert(groups.end(), {name, {}});
    found->results.push_back(&result);
  }
  for (Group& group : groups) {
    std::ranges::stable_sort(group.results, {},
                             [](const Result* result) { return result->what.bytes; });
  }
  return groups;
}

// Returns the sizes of the lines.
std::vector<Chart::Tick> sizes_of(const std::vector<Chart::Line>& lines) {
  std::vector<uint64_t> sizes;
  for (const Chart::Line& line : lines) {
    for (const auto& [bytes, value] : line.points) sizes.push_back(static_cast<uint64_t>(bytes));
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<Chart::Tick> ticks;
  for (const uint64_t bytes : sizes) {
    ticks.push_back({static_cast<double>(bytes), size_text(bytes)});
  }
  return ticks;
}

template <class Value>
Chart::Line over_size(const Group& group, size_t colour, const std::string& suffix, bool dashed,
                      Value&& value) {
  Chart::Line line{.name = group.name + suffix, .colour = colour, .dashed = dashed, .points = {}};
  for (const Result* result : group.results) {
    line.points.emplace_back(static_cast<double>(result->what.bytes), value(*result));
  }
  return line;
}

bool is_bandwidth(const Group& group) { return group.results.front()->what.test->bandwidth(); }

Chart::Panel latency_over_size(const std::vector<Group>& groups) {
  Chart::Panel panel{.title = "Latency",
                     .x_title = "bytes of a message",
                     .y_title = "microseconds",
                     .x_ticks = {},
                     .lines = {}};
  // The latency of a _bw test is that of a queue, and would hide the others.
  const bool all = std::ranges::all_of(groups, is_bandwidth);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!all && is_bandwidth(groups[i])) continue;
    for (const bool slow : {false, true}) {
      panel.lines.push_back(
          over_size(groups[i], i, slow ? ", p99" : ", p50", slow,
                    [slow](const Result& result) { return result.us(slow ? 0.99 : 0.5); }));
    }
  }
  return panel;
}

Chart::Panel throughput_over_size(const std::vector<Group>& groups) {
  Chart::Panel panel{.title = "Throughput",
                     .x_title = "bytes of a message",
                     .y_title = "Gbit/s",
                     .x_ticks = {},
                     .lines = {}};
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!is_bandwidth(groups[i])) continue;
    panel.lines.push_back(over_size(groups[i], i, "", false, [](const Result& result) {
      return 8 * result.bytes_per_second() / 1e9;
    }));
  }
  return panel;
}

// The horizontal axis is 1 / (1 - percentile), so that each nine has the same room.
Chart::Panel latency_over_percentile(const std::vector<Group>& groups) {
  Chart::Panel panel{.title = "Latency by percentile",
                     .x_title = "percent of the messages",
                     .y_title = "microseconds",
                     .x_ticks = {},
                     .lines = {}};
  constexpr std::pair<double, const char*> ticks[] = {
      {1, "0"},      {2, "50"},      {10, "90"},      {100, "99"},
      {1e3, "99.9"}, {1e4, "99.99"}, {1e5, "99.999"}, {1e6, "99.9999"}};
  double most = 1;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const Result* result : groups[i].results) {
      Chart::Line line{.name = groups[i].name + " " + size_text(result->what.bytes),
                       .colour = i,
                       .dashed = false,
                       .points = {}};
      const auto count = static_cast<double>(result->times.count());
      constexpr double steps_per_decade = 20;
      for (double step = 0; count > 0; ++step) {
        const double x = std::min(std::pow(10, step / steps_per_decade), count);
        line.points.emplace_back(x, result->us(1 - 1 / x));
        most = std::max(most, x);
        if (x >= count) break;
      }
      panel.lines.push_back(std::move(line));
    }
  }
  for (const auto& [at, label] : ticks) {
    if (at <= most) panel.x_ticks.push_back({at, label});
  }
  return panel;
}

}  // namespace

std::string plot(const std::vector<Result>& results, const std::string& note) {
  const std::vector<Group> groups = groups_of(results);
  Chart chart{.panels = {}, .note = note};
  const bool one_size = std::ranges::all_of(results, [&](const Result& result) {
    return result.what.bytes == results.front().what.bytes;
  });
  if (one_size) {
    chart.panels.push_back(latency_over_percentile(groups));
    return chart.svg();
  }
  chart.panels.push_back(latency_over_size(groups));
  if (std::ranges::any_of(groups, is_bandwidth)) {
    chart.panels.push_back(throughput_over_size(groups));
  }
  for (Chart::Panel& panel : chart.panels) panel.x_ticks = sizes_of(panel.lines);
  return chart.svg();
}

}  // namespace urma::apps::perf
