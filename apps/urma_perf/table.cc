// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace urma::apps::perf {
namespace {

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

void print_rate(std::FILE* out, const Result& result) {
  fmt::print(out, "  {}/s were to be sent, {:.1f} % were; times count from when each was due\n",
             rate_text(result.rate), result.rate_percent());
  if (result.rate_reached()) return;
  fmt::print(out,
             "  THE RATE WAS NOT REACHED, {} messages were not sent: the times above are those\n"
             "  of a growing queue, and depend on how long a round takes\n",
             result.unsent());
}

void print_flows(std::FILE* out, const Result& result) {
  constexpr size_t most_lines = 12;
  fmt::print(out, "  {}, {} processes: the sum of {} flows\n", result.traffic, result.processes,
             result.flows.size());
  if (result.flows.size() <= most_lines) {
    for (const FlowResult& one : result.flows) {
      fmt::print(out, "    {} > {} {:<13} p50 {:>6} us, p99 {:>6}, {:>6}/s, {:>6} Gbit/s\n",
                 one.flow.from, one.flow.to, one.flow.test->name, three_digits(one.p50_us),
                 three_digits(one.p99_us), rate_text(one.messages_per_second),
                 short_number(8 * one.bytes_per_second / 1e9));
    }
  } else {
    const auto [least, most] =
        std::ranges::minmax_element(result.flows, {}, &FlowResult::bytes_per_second);
    fmt::print(out, "    {} to {} Gbit/s each\n", short_number(8 * least->bytes_per_second / 1e9),
               short_number(8 * most->bytes_per_second / 1e9));
  }
  constexpr double least_overlap = 90;
  if (result.overlap_percent < least_overlap) {
    fmt::print(out, "    THEY RAN TOGETHER for {:.0f} % of the time only: give more --seconds\n",
               result.overlap_percent);
  }
}

uint64_t counter(const Result& result, const char* name) {
  const auto found = result.counters.find(name);
  return found == result.counters.end() ? 0 : found->second;
}

}  // namespace

void Table::header() {
  columns_ = columns_for(width_, kind_);
  print([](const Column& one) { return std::string(one.title); });
}

// Prints a line with the text of each column.
template <class Text>
void Table::print(Text&& text) {
  std::string line;
  for (const Column* one : columns_) {
    if (!line.empty()) line += ' ';
    line += one->left ? fmt::format("{:<{}}", text(*one), one->width)
                      : fmt::format("{:>{}}", text(*one), one->width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

void Table::row(const Result& result) {
  std::string place = result.device;
  if (result.what.gpu) place += fmt::format(", memory of cuda:{}", *result.what.gpu);
  if (place != place_) fmt::print(out_, "on {}\n", place_ = place);
  print([&](const Column& one) { return one.text(result); });
  if (result.what.ordering.unreliable()) {
    fmt::print(out_, "  {:.2f} % of the messages were lost\n", result.lost_percent());
  }
  if (!result.flows.empty()) print_flows(out_, result);
  if (result.rate > 0) print_rate(out_, result);
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
  if (kind_.limit && rows_ > 0) {
    fmt::print(out_,
               "limit: what the same two processes reach without liburma. x limit: how many\n"
               "times longer it takes with liburma, or how many times less it carries.\n");
  }
  if (kind_.plan && rows_ > 0) {
    fmt::print(out_,
               "works: of one post; a work gathers at most {} blocks of a list. prep: making all\n"
               "works. post: the calls. p50: from the first post to the last completion. one: a\n"
               "write of as many bytes, in turns. of one: how much of its rate is reached.\n",
               max_buffers);
  }
  if (discarded_ > 0) {
    fmt::print(out_,
               "Discarded, and repeated as far as there was time: {} round{}, which waited for a\n"
               "processor more than {} % of the time.\n",
               discarded_, discarded_ == 1 ? "" : "s", most_waited_percent);
  }
  if (waited_ > 0) {
    const std::string which = rows_ == 1 ? "The row" : fmt::format("{} of {} rows", waited_, rows_);
    fmt::print(out_,
               "{} waited for a processor more than {} % of the time: this machine is\n"
               "busy, and such figures mean little.\n",
               which, most_waited_percent);
  }
  if (verdict_.wrong > 0) {
    fmt::print(out_, "WRONG: {} messages. The first: {}\n", verdict_.wrong, verdict_.first);
  }
  std::fflush(out_);
}

}  // namespace urma::apps::perf
