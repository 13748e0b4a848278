#include "apps/urma_perf/table.h"

#include <fmt/format.h>

#include <cmath>

namespace urma::apps::perf {
namespace {

std::string limit_text(const Result& result) {
  const auto limit = result.limit();
  if (!limit) return "-";
  const std::string unit = result.limit_unit();
  std::string text = unit == "us"                    ? three_digits(*limit) + " us"
                     : unit == "messages_per_second" ? rate_text(*limit) + "/s"
                                                     : three_digits(*limit / 1e9) + " GB/s";
  return result.limit_of_clean_network ? "(" + text + ")" : text;
}

std::string times_text(const Result& result) {
  if (!result.limit()) return "-";
  return fmt::format("{} ({}..{})", three_digits(result.times_limit()),
                     three_digits(result.least_times_limit()),
                     three_digits(result.most_times_limit()));
}

void print_stage(std::FILE* out, const StageRow& row, uint64_t works) {
  if (row.times == 0 && row.total_ns == 0) return;
  fmt::print(out, "    {:<14} {:>11} {:>9.2f} {:>8.1f} {:>6.1f}%\n", row.stage,
             row.times > 0 ? std::to_string(row.times) : "-", row.total_ns / 1e6,
             row.total_ns / static_cast<double>(works), 100 * row.share);
}

void print_profile(std::FILE* out, std::string_view side, const std::optional<SideProfile>& profile,
                   uint64_t works) {
  if (!profile) {
    fmt::print(out, "  {}: not profiled; start it as urma_perf server --profile\n", side);
    return;
  }
  const StageRows rows = rows_of(*profile);
  fmt::print(out, "  {}: {:.3f} s, {} works, {} thread{}; the end of a stage takes {:.1f} ns\n",
             side, profile->seconds, works, profile->threads, profile->threads == 1 ? "" : "s",
             profile->cost_ns);
  fmt::print(out, "    {:<14} {:>11} {:>9} {:>8} {:>7}\n", "calls", "times", "ms", "ns/work",
             "share");
  for (const StageRow& row : rows.calls) print_stage(out, row, works);
  fmt::print(out, "    in calls or beside them\n");
  for (const StageRow& row : rows.device) print_stage(out, row, works);
}

uint64_t counter(const Result& result, const char* name) {
  const auto found = result.counters.find(name);
  return found == result.counters.end() ? 0 : found->second;
}

}  // namespace

std::string three_digits(double value) {
  if (!(value > 0)) return "0";
  const int before_point = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::max(0, 3 - before_point));
}

std::string rate_text(double per_second) {
  if (per_second >= 1e6) return three_digits(per_second / 1e6) + "M";
  if (per_second >= 1e3) return three_digits(per_second / 1e3) + "k";
  return three_digits(per_second);
}

void Table::header() {
  fmt::print(out_,
             "{:<15} {:<{}} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>5} "
             "{:>6}",
             "test", "device", device_width_, "size", "p50 us", "p90", "p99", "p99.9", "max",
             "msg/s", "GB/s", "#wrong", "retx", "RNR", "dup");
  if (limit_) fmt::print(out_, " {:>11} {:>19} {:<18}", "limit", "x limit", "limit by");
  fmt::print(out_, " {:>6}\n", "wait");
  std::fflush(out_);
}

void Table::row(const Result& result) {
  fmt::print(out_,
             "{:<15} {:<{}} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>5} "
             "{:>6}",
             result.what.test->name, result.device, device_width_, size_text(result.what.bytes),
             three_digits(result.us(0.5)), three_digits(result.us(0.9)),
             three_digits(result.us(0.99)), three_digits(result.us(0.999)),
             three_digits(result.max_us()), rate_text(result.messages_per_second()),
             three_digits(result.bytes_per_second() / 1e9), result.verdict.wrong,
             counter(result, "retransmitted"), counter(result, "receiver_not_ready"),
             counter(result, "duplicates"));
  if (limit_) {
    fmt::print(out_, " {:>11} {:>19} {:<18}", limit_text(result), times_text(result),
               result.limit_pattern);
  }
  fmt::print(out_, " {:>5.1f}%\n", result.waited_percent());
  if (result.what.ordering.unreliable()) {
    fmt::print(out_, "  {:.2f} % of the messages were lost\n", result.lost_percent());
  }
  if (const uint64_t trains = counter(result, "client_paced_trains"); trains > 0) {
    const auto packets = static_cast<double>(counter(result, "client_paced_packets"));
    fmt::print(out_, "  paced packets left in trains of {}\n",
               three_digits(packets / static_cast<double>(trains)));
  }
  for (const PathUse& one : result.paths) {
    fmt::print(out_, "  {} > {}: {:.1f} % of the packets, {:.2f} % of them lost, rtt {} us{}\n",
               to_string(one.path.from), to_string(one.path.to), 100 * one.share, 100 * one.loss,
               three_digits(static_cast<double>(one.path.rtt.count()) / 1000),
               one.path.usable ? "" : ", not usable");
  }
  if (result.profiles.client) {
    print_profile(out_, "client", result.profiles.client, result.messages());
    print_profile(out_, "server", result.profiles.server, result.messages());
  }
  std::fflush(out_);
  ++rows_;
  if (result.waited_percent() > most_waited_percent) ++waited_;
  discarded_ += result.discarded();
  verdict_.add(result.verdict);
}

void Table::footer() {
  if (discarded_ > 0) {
    fmt::print(out_,
               "{} rounds were discarded and repeated, as far as there was time, because they "
               "waited for a "
               "processor more than {} % of theirs.\n",
               discarded_, most_waited_percent);
  }
  if (waited_ > 0) {
    fmt::print(out_,
               "{} of {} rows waited for a processor more than {} % of their time: this "
               "machine is busy, and they mean little.\n",
               waited_, rows_, most_waited_percent);
  }
  if (verdict_.wrong > 0) {
    fmt::print(out_, "WRONG: {} messages. The first: {}\n", verdict_.wrong, verdict_.first);
  }
  std::fflush(out_);
}

}  // namespace urma::apps::perf
