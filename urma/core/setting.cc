// SPDX-License-Identifier: Apache-2.0
#include "urma/core/setting.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

namespace urma {
namespace {

struct Unit {
  std::string_view name;
  uint64_t count;
};

// Writes the count in the largest unit of which it is a whole number. The last unit is 1.
std::string whole(uint64_t count, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (count != 0 && count % unit.count == 0) {
      return std::to_string(count / unit.count) + std::string(unit.name);
    }
  }
  return std::to_string(count) + std::string(units.back().name);
}

}  // namespace

void set(SettingList& settings, Setting setting) {
  const auto same = [&](const Setting& other) { return other.name == setting.name; };
  const auto found = std::find_if(settings.begin(), settings.end(), same);
  if (found == settings.end()) {
    settings.push_back(std::move(setting));
  } else {
    *found = std::move(setting);
  }
}

std::string size_text(uint64_t bytes) {
  constexpr Unit units[] = {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"", 1}};
  return whole(bytes, units);
}

std::string duration_text(Duration duration) {
  if (duration == Duration{}) return "0s";
  constexpr Unit units[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};
  return whole(static_cast<uint64_t>(duration.count()), units);
}

std::string fraction_text(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%g%%", fraction * 100);
  return text;
}

}  // namespace urma
