// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace urma::apps::simulation {
namespace {

using nlohmann::json;

double micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// A number that JSON cannot have, or that is not known, is null.
json number(double value, bool known = true) {
  return known && std::isfinite(value) ? json(value) : json(nullptr);
}

// The value that this share of the ended flows does not exceed; 0 if none has ended.
double percentile(const Result& result, double share, double Result::FlowResult::*value) {
  std::vector<double> all;
  for (const Result::FlowResult& flow : result.flows) {
    if (flow.seconds > 0) all.push_back(flow.*value);
  }
  if (all.empty()) return 0;
  std::ranges::sort(all);
  const double place = std::ceil(share * static_cast<double>(all.size()));
  return all[static_cast<size_t>(std::max(place, 1.0)) - 1];
}

json percentiles(const Result& result, double scale, double Result::FlowResult::*value) {
  const bool known = percentile(result, 1, value) > 0;
  return {{"p50", number(scale * percentile(result, 0.5, value), known)},
          {"p90", number(scale * percentile(result, 0.9, value), known)},
          {"p99", number(scale * percentile(result, 0.99, value), known)},
          {"most", number(scale * percentile(result, 1, value), known)}};
}

json flows_json(const Result& result) {
  json flows = json::array();
  for (const Result::FlowResult& flow : result.flows) {
    flows.push_back({{"from", flow.from},
                     {"to", flow.to},
                     {"bits_per_second", 8 * flow.bytes_per_second},
                     {"fair_share", number(flow.fair_share, flow.fair_share > 0)},
                     {"completion_us", number(1e6 * flow.seconds, flow.seconds > 0)},
                     {"slowdown", number(flow.slowdown, flow.seconds > 0)}});
  }
  return flows;
}

json queue_json(const Result::Queue& queue) {
  json histogram = json::array();
  for (size_t i = 0; i < queue.histogram.size(); ++i) {
    if (queue.histogram[i] == 0) continue;
    histogram.push_back({{"most_packets", i}, {"samples", queue.histogram[i]}});
  }
  json out = {{"histogram", histogram}};
  for (const auto& [name, bytes] : std::initializer_list<std::pair<std::string, uint64_t>>{
           {"p50", queue.p50}, {"p99", queue.p99}, {"p999", queue.p999}, {"most", queue.most}}) {
    out[name + "_bytes"] = bytes;
    out[name + "_packets"] = queue.packets(bytes);
  }
  return out;
}

double virtual_us_per_second(const Result& result) {
  return 1e6 * result.virtual_seconds / std::max(result.seconds, 1e-9);
}

std::string rounds_text(double rounds) {
  return std::isfinite(rounds) ? fmt::format("{:.0f} rounds", rounds) : "never";
}

std::string flow_lines(const Result& result) {
  std::string out = fmt::format("\n{:>6} {:>6} {:>10} {:>10} {:>12} {:>9}\n", "from", "to", "Gb/s",
                                "fair", "time us", "slowdown");
  constexpr size_t most = 16;
  for (size_t i = 0; i < std::min(most, result.flows.size()); ++i) {
    const Result::FlowResult& flow = result.flows[i];
    const auto known = [](bool is, const std::string& text) { return is ? text : "-"; };
    out += fmt::format("{:>6} {:>6} {:>10.3f} {:>10} {:>12} {:>9}\n", flow.from, flow.to,
                       8e-9 * flow.bytes_per_second,
                       known(flow.fair_share > 0, fmt::format("{:.3f}", flow.fair_share)),
                       known(flow.seconds > 0, fmt::format("{:.1f}", 1e6 * flow.seconds)),
                       known(flow.seconds > 0, fmt::format("{:.2f}", flow.slowdown)));
  }
  if (result.flows.size() > most) {
    out += fmt::format("... and {} more; --json has all\n", result.flows.size() - most);
  }
  return out;
}

}  // namespace

json report_json(const Options& options, const Plan& plan, const Result& result) {
  const Choice& choice = options.choice;
  const bool ends = choice.flow_bytes > 0;
  return {{"schema", "urma_sim/1"},
          {"scenario", std::string(options.scenario->name)},
          {"topology", std::string(Switches::name_of(choice.shape))},
          {"cc", std::string(choice.cc)},
          {"cc_in_effect", result.control},
          {"meter", plan.switches.meter},
          {"hosts", plan.hosts.size()},
          {"senders", plan.flows.size()},
          {"bits_per_second", 8 * choice.bytes_per_second},
          {"rtt_us", micros(choice.rtt)},
          {"message_bytes", choice.message_bytes},
          {"lanes", choice.lanes},
          {"flow_bytes", ends ? json(choice.flow_bytes) : json(nullptr)},
          {"seed", choice.seed},
          {"complete", result.complete},
          {"utilisation", number(result.utilisation, result.utilisation > 0)},
          {"jain", result.jain},
          {"off_fair", number(result.off_fair, result.flows[0].fair_share > 0)},
          {"last_over_ideal", number(result.last_over_ideal, result.last_over_ideal > 0)},
          {"completion_us", percentiles(result, 1e6, &Result::FlowResult::seconds)},
          {"slowdown", percentiles(result, 1, &Result::FlowResult::slowdown)},
          {"join_rounds", number(result.join_rounds, plan.phases)},
          {"leave_rounds", number(result.leave_rounds, plan.phases)},
          {"queue", queue_json(result.queue)},
          {"marked", result.marked},
          {"congested", result.congested},
          {"dropped", result.dropped},
          {"packets", result.packets},
          {"retransmitted", result.retransmitted},
          {"timeouts", result.timeouts},
          {"flows", flows_json(result)},
          {"trace_hash", hash_text(result.trace_hash)},
          {"virtual_us", 1e6 * result.virtual_seconds},
          {"seconds", result.seconds},
          {"virtual_us_per_second", virtual_us_per_second(result)}};
}

std::string report_text(const Options& options, const Plan& plan, const Result& result) {
  const Choice& choice = options.choice;
  std::string out = fmt::format(
      "{}: {}\n{} of {} hosts send, {} Gb/s, round trip {} us, --cc {}, port meters: {}\n\n",
      options.scenario->name, options.scenario->summary, plan.flows.size(), plan.hosts.size(),
      8e-9 * static_cast<double>(choice.bytes_per_second), micros(choice.rtt), choice.cc,
      plan.switches.meter);
  if (result.control != choice.cc) {
    out += fmt::format("The hosts use {} instead: {}\n\n", result.control, result.why);
  }
  const auto line = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("{:<18} {}\n", name, value);
  };
  if (!result.complete) line("incomplete", "some flows have not ended; give a longer --duration");
  if (result.utilisation > 0) line("utilisation", fmt::format("{:.3f}", result.utilisation));
  if (!plan.phases && choice.lanes == 1) {
    line("Jain's index", fmt::format("{:.4f}   (1: all flows got fair shares)", result.jain));
  }
  if (result.flows[0].fair_share > 0) {
    line("off fair",
         fmt::format("{:.1f} %   (the largest difference to a fair share)", 100 * result.off_fair));
  }
  if (result.last_over_ideal > 0) {
    line("last flow", fmt::format("{:.3f} x ideal", result.last_over_ideal));
    line("slowdown", fmt::format("p50 {:.2f}  p99 {:.2f}  most {:.2f}",
                                 percentile(result, 0.5, &Result::FlowResult::slowdown),
                                 percentile(result, 0.99, &Result::FlowResult::slowdown),
                                 percentile(result, 1, &Result::FlowResult::slowdown)));
  }
  if (plan.phases) {
    line("fair after a join", rounds_text(result.join_rounds));
    line("after a leave", rounds_text(result.leave_rounds));
  }
  const Result::Queue& queue = result.queue;
  line("packets queued",
       fmt::format("p50 {:.1f}  p99 {:.1f}  longest {:.1f}", queue.packets(queue.p50),
                   queue.packets(queue.p99), queue.packets(queue.most)));
  line("packets", fmt::format("{} sent, {} again ({} time-outs)", result.packets,
                              result.retransmitted, result.timeouts));
  line("switches", fmt::format("{} marked, {} answered with C, {} dropped", result.marked,
                               result.congested, result.dropped));
  line("trace hash", hash_text(result.trace_hash));
  line("time",
       fmt::format("{:.0f} us of virtual time in {:.2f} s: {:.0f} us each second",
                   1e6 * result.virtual_seconds, result.seconds, virtual_us_per_second(result)));
  return out + flow_lines(result);
}

}  // namespace urma::apps::simulation
