// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace urma::apps::perf {
namespace {

std::string limit_text(const Result& result) {
  const auto limit = result.limit();
  if (!limit) return "-";
  const std::string unit = result.limit_unit();
  std::string text;
  if (unit == "us") {
    text = three_digits(*limit) + "us";
  } else if (unit == "messages_per_second") {
    text = rate_text(*limit) + "/s";
  } else {
    // "0.710GB/s" in brackets would be wider than the column.
    text = *limit < 1e9 ? three_digits(*limit / 1e6) + "MB/s" : short_number(*limit / 1e9) + "GB/s";
  }
  return result.limit_of_clean_network ? "(" + text + ")" : text;
}

std::string spread_text(const Result& result) {
  if (!result.limit()) return "-";
  return fmt::format("{}..{}", three_digits(result.least_times_limit()),
                     three_digits(result.most_times_limit()));
}

std::string counter_text(const Result& result, const char* name) {
  const auto found = result.counters.find(name);
  return std::to_string(found == result.counters.end() ? 0 : found->second);
}

// Returns "298x1152K", or "57 blocks" if they differ in size.
std::string blocks_text(const Result& result) {
  const PlanShape& plan = result.what.plan;
  if (plan.block_bytes == 0) return fmt::format("{} blocks", plan.blocks);
  return fmt::format("{}x{}", plan.blocks, size_text(plan.block_bytes));
}

using Shown = Column::Shown;

constexpr Column columns[] = {
    {"test", 15, true, Shown::without_plan, 0, false,
     [](const Result& r) { return std::string(r.what.test->name); }},
    {"size", 5, false, Shown::without_plan, 0, false,
     [](const Result& r) { return size_text(r.what.bytes); }},
    {"blocks", 12, true, Shown::plan, 0, false, blocks_text},
    {"entries", 7, false, Shown::plan, 0, false,
     [](const Result& r) {
       return r.what.plan.entries > 0 ? std::to_string(r.what.plan.entries) : "-";
     }},
    {"works", 5, false, Shown::plan, 0, false,
     [](const Result& r) { return std::to_string(r.what.plan.works_at_once); }},
    {"prep us", 7, false, Shown::plan, 0, false,
     [](const Result& r) { return three_digits(r.prep_us()); }},
    {"post us", 7, false, Shown::plan, 0, false,
     [](const Result& r) { return three_digits(r.post_us()); }},
    {"Jetty", 5, false, Shown::jetties, 0, false,
     [](const Result& r) { return std::to_string(r.what.jetties); }},
    {"p50 us", 6, false, Shown::always, 0, false,
     [](const Result& r) { return latency_text(r.us(0.5)); }},
    {"p90", 6, false, Shown::if_wide, 4, false,
     [](const Result& r) { return latency_text(r.us(0.9)); }},
    {"p99", 6, false, Shown::without_plan, 0, false,
     [](const Result& r) { return latency_text(r.us(0.99)); }},
    {"p99.9", 6, false, Shown::if_wide, 3, false,
     [](const Result& r) { return latency_text(r.us(0.999)); }},
    {"max", 6, false, Shown::if_wide, 2, false,
     [](const Result& r) { return latency_text(r.max_us()); }},
    {"msg/s", 5, false, Shown::without_plan, 0, false,
     [](const Result& r) { return rate_text(r.messages_per_second()); }},
    {"GB/s", 6, false, Shown::always, 0, false,
     [](const Result& r) { return short_number(r.bytes_per_second() / 1e9); }},
    {"Gbit/s", 6, false, Shown::without_jetties, 0, false,
     [](const Result& r) { return short_number(8 * r.bytes_per_second() / 1e9); }},
    {"one us", 7, false, Shown::plan, 0, false,
     [](const Result& r) { return three_digits(r.one_write_us()); }},
    {"of one", 6, false, Shown::plan, 0, false,
     [](const Result& r) { return three_digits(r.of_one_write()); }},
    {"wrong", 5, false, Shown::always, 0, false,
     [](const Result& r) { return std::to_string(r.verdict.wrong); }},
    {"retx", 6, false, Shown::if_wide, 5, false,
     [](const Result& r) { return counter_text(r, "retransmitted"); }},
    {"RNR", 5, false, Shown::if_wide, 6, false,
     [](const Result& r) { return counter_text(r, "receiver_not_ready"); }},
    {"dup", 6, false, Shown::if_wide, 7, false,
     [](const Result& r) { return counter_text(r, "duplicates"); }},
    {"limit", 10, false, Shown::limit, 0, true, limit_text},
    {"x limit", 7, false, Shown::limit, 0, true,
     [](const Result& r) { return r.limit() ? three_digits(r.times_limit()) : "-"; }},
    {"from..to", 13, false, Shown::if_wide, 8, true, spread_text},
    {"limit by", 19, true, Shown::if_wide, 1, true,
     [](const Result& r) { return std::string(r.limit_pattern); }},
    {"wait", 6, false, Shown::if_wide, 0, false,
     [](const Result& r) { return fmt::format("{:.1f}%", r.waited_percent()); }},
};

}  // namespace

std::vector<const Column*> columns_for(size_t width, const Rows& rows) {
  std::vector<const Column*> wide;
  size_t used = 0;
  const auto taken = [](const Column& one) { return static_cast<size_t>(one.width) + 1; };
  const auto is_always_shown = [&](const Column& one) {
    return one.shown == Shown::always || (one.shown == Shown::plan && rows.plan) ||
           (one.shown == Shown::without_plan && !rows.plan) ||
           (one.shown == Shown::limit && rows.limit) ||
           (one.shown == Shown::jetties && rows.jetties) ||
           (one.shown == Shown::without_jetties && !rows.jetties && !rows.plan);
  };
  for (const Column& one : columns) {
    if (is_always_shown(one)) {
      used += taken(one);
    } else if (one.shown == Shown::if_wide && (rows.limit || !one.of_limit)) {
      wide.push_back(&one);
    }
  }
  std::ranges::sort(wide, {}, &Column::rank);
  const auto end = std::ranges::find_if(wide, [&](const Column* one) {
    used += taken(*one);
    return used - 1 > width;  // the last column needs no blank
  });
  std::vector<const Column*> out;
  for (const Column& one : columns) {
    if (is_always_shown(one) || std::find(wide.begin(), end, &one) != end) out.push_back(&one);
  }
  return out;
}

std::string three_digits(double value) {
  if (!(value > 0)) return "0";
  const int before_point = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::max(0, 3 - before_point));
}

std::string short_number(double value) {
  if (!(value > 0)) return "0";
  if (value < 0.001) return "<.001";
  const int before_point = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - before_point, 0, 3));
}

std::string latency_text(double us) {
  constexpr double widest = 999'999;  // of the columns
  return us <= widest ? three_digits(us) : three_digits(us / 1e6) + "s";
}

std::string rate_text(double per_second) {
  if (per_second >= 1e6) return three_digits(per_second / 1e6) + "M";
  if (per_second >= 1e3) return three_digits(per_second / 1e3) + "k";
  return three_digits(per_second);
}

}  // namespace urma::apps::perf
