// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "apps/common/interrupt.h"
#include "apps/urma_stat/columns.h"
#include "apps/urma_stat/look.h"
#include "apps/urma_stat/peers.h"
#include "apps/urma_stat/screen.h"
#include "apps/urma_stat/text.h"

namespace urma::apps::stat {
namespace {

// Sorts the channels of a device by rate, the highest first.
void sort_channels(Row& row) {
  if (!row.device.channels) return;
  std::vector<ObservedChannel>& channels = row.device.channels->shown;
  std::vector<size_t> order(channels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return row.channel_rates[i].value_or(0); });
  std::vector<ObservedChannel> sorted;
  std::vector<std::optional<double>> rates;
  for (const size_t i : order) {
    sorted.push_back(std::move(channels[i]));
    rates.push_back(row.channel_rates[i]);
  }
  channels = std::move(sorted);
  row.channel_rates = std::move(rates);
}

void sort_by_rate(Look& look) {
  std::ranges::stable_sort(look.rows, std::ranges::greater(),
                           [](const Row& row) { return bytes_rate(row).value_or(0); });
  std::ranges::for_each(look.rows, sort_channels);
}

// Returns the first `most` lines, and says how many are left out.
std::string first_lines(const std::string& text, size_t most) {
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n'));
  if (lines <= most) return text;
  size_t end = 0;
  for (size_t i = 1; i < most; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end) + fmt::format("... and {} more\n", lines - (most - 1));
}

std::string picture(const Look& look, const Options& options, const Screen& screen) {
  double rate = 0;
  for (const Row& row : look.rows) rate += bytes_rate(row).value_or(0);
  std::string out =
      fmt::format("{}   {} device{}, {}B/s   each {} s   q: end, a: {}\n\n", date(look.time),
                  look.rows.size(), look.rows.size() == 1 ? "" : "s", short_number(rate),
                  *options.watch, options.all ? "hide idle" : "show idle");
  // The devices have up to half of the rows.
  const size_t half = std::max<size_t>(screen.rows() / 2, 6) - 3;
  out += first_lines(table(look, true, screen.columns()), half);
  out += "\n" + peers_table(look, {.room = screen.columns(), .all = options.all});
  for (const std::string& one : look.skipped) out += "\n" + one + "\n";
  return out;
}

}  // namespace

Exit show_top(const Options& given) {
  using Clock = std::chrono::steady_clock;
  Options options = given;
  Watcher watcher(options.process, options.user);
  Look look = watcher.look();  // rates are known from the second look on
  Screen screen;
  // The first rates come soon, so that the screen is not empty for long.
  double seconds = 0.2;
  for (uint64_t looks = 0; looks < options.count.value_or(UINT64_MAX); ++looks) {
    const auto begun = Clock::now();
    const auto left = [&] {
      return seconds - std::chrono::duration<double>(Clock::now() - begun).count();
    };
    while (left() > 0) {
      const std::optional<char> key = screen.key(left());
      if (interrupted()) return Exit::interrupted;
      if (key == 'q' || key == 'Q') return Exit::ok;
      if (key == 'a') options.all = !options.all;
      const bool changed = screen.resized() || key == 'a';
      if (changed && looks > 0) screen.show(picture(look, options, screen));
    }
    look = watcher.look();
    sort_by_rate(look);
    screen.show(picture(look, options, screen));
    seconds = *options.watch;
  }
  return Exit::ok;
}

}  // namespace urma::apps::stat
