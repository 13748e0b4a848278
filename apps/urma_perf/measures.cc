// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/measures.h"

#include <algorithm>
#include <span>

#include "apps/urma_perf/counters.h"

namespace urma::apps::perf {
namespace {

using Kind = Measure::Kind;

constexpr double needs_unit = 0;
constexpr double bits = 1.0 / 8;  // of bytes

// A name of a field. The name of the field itself is one, unless another field has it as a short
// name.
struct Named {
  std::string_view name;
  std::string_view field;
  Kind kind;
  double bare = 1;
  std::string_view needs = "";
  bool counter = false;
};

// A bandwidth without a unit could be bits or bytes, so a short name needs one; the name of the
// field and the title of a column have one.
constexpr Named names[] = {
    {"lat", "p50_us", Kind::time},
    {"latency", "p50_us", Kind::time},
    {"median", "p50_us", Kind::time},
    {"p50", "p50_us", Kind::time},
    {"p90", "p90_us", Kind::time},
    {"p99", "p99_us", Kind::time},
    {"p99.9", "p99_9_us", Kind::time},
    {"p999", "p99_9_us", Kind::time},
    {"p99.99", "p99_99_us", Kind::time},
    {"p9999", "p99_99_us", Kind::time},
    {"max", "max_us", Kind::time},
    {"mean", "mean_us", Kind::time},
    {"avg", "mean_us", Kind::time},
    {"stddev", "deviation_us", Kind::time},
    {"p50_us", "p50_us", Kind::time},
    {"p90_us", "p90_us", Kind::time},
    {"p99_us", "p99_us", Kind::time},
    {"p99_9_us", "p99_9_us", Kind::time},
    {"p99_99_us", "p99_99_us", Kind::time},
    {"max_us", "max_us", Kind::time},
    {"mean_us", "mean_us", Kind::time},
    {"deviation_us", "deviation_us", Kind::time},
    {"bw", "bytes_per_second", Kind::bandwidth, needs_unit},
    {"bandwidth", "bytes_per_second", Kind::bandwidth, needs_unit},
    {"throughput", "bytes_per_second", Kind::bandwidth, needs_unit},
    {"GB/s", "bytes_per_second", Kind::bandwidth, 1e9},
    {"Gbit/s", "bytes_per_second", Kind::bandwidth, 1e9 * bits},
    {"bytes_per_second", "bytes_per_second", Kind::bandwidth},
    {"rate", "messages_per_second", Kind::rate},
    {"msg_rate", "messages_per_second", Kind::rate},
    {"msg/s", "messages_per_second", Kind::rate},
    {"messages_per_second", "messages_per_second", Kind::rate},
    {"wrong", "wrong", Kind::count},
    {"messages", "messages", Kind::count},
    {"lost", "lost_percent", Kind::percent},
    {"lost_percent", "lost_percent", Kind::percent},
    {"wait", "run_queue_wait_percent", Kind::percent},
    {"run_queue_wait_percent", "run_queue_wait_percent", Kind::percent},
    {"discarded_rounds", "discarded_rounds", Kind::count},
    {"size_bytes", "size_bytes", Kind::number},
    {"depth", "depth", Kind::number},
    {"jetties", "jetties", Kind::number},
    {"signal_every", "signal_every", Kind::number},
    {"fence_every", "fence_every", Kind::number},
    {"spread_bytes", "spread_bytes", Kind::number},
    {"x_limit", "times_limit", Kind::ratio, 1, "--limit"},
    {"times_limit", "times_limit", Kind::ratio, 1, "--limit"},
    {"times_limit_least", "times_limit_least", Kind::ratio, 1, "--limit"},
    {"times_limit_most", "times_limit_most", Kind::ratio, 1, "--limit"},
    {"limit", "limit", Kind::number, 1, "--limit"},
    {"rate_percent", "rate_percent", Kind::percent, 1, "--rate"},
    {"unsent", "unsent", Kind::count, 1, "--rate"},
    {"processes", "processes", Kind::number, 1, "--pattern"},
    {"overlap_percent", "overlap_percent", Kind::percent, 1, "--pattern"},
    {"blocks", "blocks", Kind::number, 1, "kv"},
    {"block_bytes", "block_bytes", Kind::number, 1, "kv"},
    {"entries", "entries", Kind::number, 1, "kv"},
    {"works", "works", Kind::number, 1, "kv"},
    {"works_at_once", "works_at_once", Kind::number, 1, "kv"},
    {"prep", "prep_us", Kind::time, 1, "kv"},
    {"post", "post_us", Kind::time, 1, "kv"},
    {"prep_us", "prep_us", Kind::time, 1, "kv"},
    {"post_us", "post_us", Kind::time, 1, "kv"},
    {"one_write_us", "one_write_us", Kind::time, 1, "kv"},
    {"of_one", "of_one_write", Kind::ratio, 1, "kv"},
    {"of_one_write", "of_one_write", Kind::ratio, 1, "kv"},
    {"retx", "retransmitted", Kind::count, 1, "", true},
    {"rnr", "receiver_not_ready", Kind::count, 1, "", true},
    {"RNR", "receiver_not_ready", Kind::count, 1, "", true},
    {"dup", "duplicates", Kind::count, 1, "", true},
};

// Returns 1, 1e3 ... for "", "K" ...; 0 if it is not a prefix.
double decimal(std::string_view prefix) {
  if (prefix.empty()) return 1;
  if (prefix == "K" || prefix == "k") return 1e3;
  return prefix == "M" ? 1e6 : prefix == "G" ? 1e9 : prefix == "T" ? 1e12 : 0;
}

// Returns 1024 ... for "Ki" ..., and like `decimal` otherwise.
double prefix_of(std::string_view prefix) {
  if (!prefix.ends_with('i')) return decimal(prefix);
  prefix.remove_suffix(1);
  constexpr std::string_view letters = "KMGT";
  const size_t at = prefix.size() == 1 ? letters.find(prefix.front()) : letters.npos;
  return at == letters.npos ? 0 : static_cast<double>(uint64_t{1} << (10 * (at + 1)));
}

// b is a bit and B a byte: Gbps, Gb/s, Gbit/s, GB/s, GiB/s.
double bandwidth_scale(std::string_view unit) {
  for (const auto& [ending, scale] : {std::pair<std::string_view, double>{"bit/s", bits},
                                      {"bps", bits},
                                      {"b/s", bits},
                                      {"B/s", 1},
                                      {"Bps", 1}}) {
    if (unit.ends_with(ending)) {
      return prefix_of(unit.substr(0, unit.size() - ending.size())) * scale;
    }
  }
  return 0;
}

double time_scale(std::string_view unit) {
  if (unit == "us" || unit == "\u00b5s") return 1;
  return unit == "ns" ? 1e-3 : unit == "ms" ? 1e3 : unit == "s" ? 1e6 : 0;
}

double rate_scale(std::string_view unit) {
  for (const std::string_view ending : {"msg/s", "/s", "pps"}) {
    if (!unit.ends_with(ending)) continue;
    unit.remove_suffix(ending.size());
    break;
  }
  return decimal(unit);
}

double scale_or_0(Kind kind, std::string_view unit) {
  switch (kind) {
    case Kind::time:
      return time_scale(unit);
    case Kind::bandwidth:
      return bandwidth_scale(unit);
    case Kind::rate:
      return rate_scale(unit);
    case Kind::count:
      return decimal(unit);
    case Kind::percent:
      return unit == "%" ? 1 : 0;
    case Kind::ratio:
      return unit == "x" ? 1 : 0;
    case Kind::number:
      return 0;
  }
  return 0;
}

}  // namespace

std::optional<Measure> find_measure(std::string_view name) {
  const auto* const found = std::ranges::find(names, name, &Named::name);
  if (found != std::end(names)) {
    return Measure{.field = std::string(found->field),
                   .kind = found->kind,
                   .bare = found->bare,
                   .needs = found->needs,
                   .counter = found->counter};
  }
  if (!combine(difference({}, {}), difference({}, {})).contains(std::string(name))) return {};
  return Measure{.field = std::string(name), .kind = Kind::count, .counter = true};
}

std::vector<std::string> measure_names() {
  std::vector<std::string> all;
  for (const Named& one : names) all.emplace_back(one.name);
  for (const auto& [name, value] : combine(difference({}, {}), difference({}, {}))) {
    all.push_back(name);
  }
  return all;
}

std::string_view usual_measure_names() {
  return "lat, p50, p90, p99, p99.9, p99.99, max, mean, stddev, bw, rate, wrong, lost, wait, retx, "
         "rnr, dup; x_limit with --limit; rate_percent and unsent with --rate; prep, post and "
         "of_one of kv; and each number that --json prints";
}

std::optional<double> scale_of(Kind kind, std::string_view unit) {
  const double scale = scale_or_0(kind, unit);
  return scale > 0 ? std::optional(scale) : std::nullopt;
}

std::string_view units_of(Kind kind) {
  switch (kind) {
    case Kind::time:
      return "a time: ns, us, ms or s";
    case Kind::bandwidth:
      return "a bandwidth: GB/s, MB/s, Gbps or Mbps (B is bytes, b bits)";
    case Kind::rate:
      return "messages per second: K, M or nothing";
    case Kind::count:
      return "a count: K, M or nothing";
    case Kind::percent:
      return "a percentage: % or nothing";
    case Kind::ratio:
      return "a ratio: x or nothing";
    case Kind::number:
      return "a number without a unit";
  }
  return "";
}

}  // namespace urma::apps::perf
