// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/timetable.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/urma_perf/clock.h"

namespace urma::apps::perf {
namespace {

// Returns how many messages per second this unit is; 0 if it is not a unit.
double messages_in(std::string_view unit) {
  if (unit.empty()) return 1;
  if (unit == "K" || unit == "k") return 1e3;
  return unit == "M" ? 1e6 : 0;
}

}  // namespace

std::optional<double> MessageRate::read(std::string_view word) const {
  double number = 0;
  const auto [end, failure] =
      std::from_chars(word.data(), word.data() + word.size(), number, std::chars_format::fixed);
  if (failure != std::errc{}) return std::nullopt;
  const double unit = messages_in(word.substr(static_cast<size_t>(end - word.data())));
  const double value = number * unit;
  if (!std::isfinite(value) || value < least || value > most) return std::nullopt;
  return value;
}

std::string MessageRate::valid() const {
  return "messages per second from 0.1 to 1000M, as 5000, 20K or 1.5M";
}

Timetable::Timetable(double per_second, uint32_t thread, uint32_t threads)
    : interval_(static_cast<double>(second) * threads / per_second),
      // Half of an interval before the first message and half of one after the last one, so that a
      // round has as many messages as its time says.
      first_(interval_ * (thread + 0.5) / threads) {}

int64_t Timetable::time_of(uint64_t k) const {
  constexpr double never = 4e18;  // a century
  return begin_ +
         static_cast<int64_t>(std::min(first_ + interval_ * static_cast<double>(k), never));
}

uint64_t Timetable::due_before(int64_t time) const {
  const double since = static_cast<double>(time - begin_) - first_;
  if (since <= 0) return 0;
  auto count = static_cast<uint64_t>(since / interval_);
  // Rounding of the division must not contradict `time_of`.
  while (count > 0 && time_of(count - 1) >= time) --count;
  while (time_of(count) < time) ++count;
  return count;
}

}  // namespace urma::apps::perf
