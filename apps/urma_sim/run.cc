// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "apps/common/failure.h"
#include "apps/urma_sim/world.h"
#include "base/clock.h"
#include "fabric/switch.h"

namespace urma::apps::simulation {
namespace {

double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

void go(World& world, Duration time) {
  if (!world.run(time))
    throw Failure(Exit::interrupted,
                  "Ctrl-C ended the run, which has no results yet. Fix: give a "
                  "shorter --duration");
}

// Jain's index of values; 0 if all are 0.
double jain_of(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(values.size()) * squares);
}

// Runs one phase of J1, and returns the round trips after which the flows from `first` to `last`
// have equal shares of a used line in each window of five round trips; infinity if that is never.
double settling(World& world, const Choice& choice, uint32_t first, uint32_t last) {
  constexpr int64_t window_rounds = 5;
  double settled = 0;
  for (int64_t at = 0; at < phase_rounds; at += window_rounds) {
    const auto before = world.acknowledged();
    go(world, window_rounds * choice.round());
    const auto after = world.acknowledged();
    std::vector<double> got;
    for (uint32_t i = first; i < last; ++i)
      got.push_back(static_cast<double>(after[i] - before[i]));
    const double used = std::accumulate(got.begin(), got.end(), 0.0) /
                        choice.carried(window_rounds * choice.round());
    if (jain_of(got) < 0.95 || used < 0.85) settled = static_cast<double>(at + window_rounds);
  }
  return settled < static_cast<double>(phase_rounds) ? settled
                                                     : std::numeric_limits<double>::infinity();
}

void run_phases(World& world, const Choice& choice, Result& result) {
  for (uint32_t i = 0; i < choice.senders; ++i) {
    result.join_rounds = std::max(result.join_rounds, settling(world, choice, 0, i + 1));
  }
  for (uint32_t i = 0; i + 1 < choice.senders; ++i) {
    result.leave_rounds =
        std::max(result.leave_rounds, settling(world, choice, i + 1, choice.senders));
  }
}

void read_queue(World& world, const Choice& choice, Result::Queue& queue) {
  const Switches::Port port = world.bottleneck();
  for (uint32_t lane = 0; lane < choice.lanes; ++lane) {
    queue.most = std::max<uint64_t>(queue.most, port.at.counters(port.number, lane).most_queue);
  }
  queue.most += packet_bytes;  // the counter has the bytes that are ahead of a packet
  // The samples are of all lanes together.
  if (choice.lanes > 1) queue.most = std::max(queue.most, world.queue().most());
  queue.p50 = world.queue().quantile(0.5);
  queue.p99 = world.queue().quantile(0.99);
  queue.p999 = world.queue().quantile(0.999);
  queue.histogram = world.queue().by_packets();
}

void read_counters(World& world, Result& result) {
  for (fabric::Switch& at : world.network().switches()->network().switches()) {
    for (uint32_t port = 0; port < at.settings().ports; ++port) {
      at.settle(port, world.now());
      for (uint32_t lane = 0; lane < at.settings().lanes; ++lane) {
        result.marked += at.counters(port, lane).marked;
        result.congested += at.counters(port, lane).congested;
      }
      for (const uint64_t drops : at.counters(port).drops) result.dropped += drops;
    }
  }
  const Statistics all = world.statistics();
  result.packets = all.packets_sent;
  result.retransmitted = all.retransmitted;
  result.timeouts = all.retransmission_timeouts;
  result.trace_hash = world.network().trace_hash();
  const Setting control = world.control();
  result.control = control.value;
  result.why = control.source;
}

// Returns the part of a flow's acknowledged bytes that is payload: the ICRC is not counted in them.
double payload_share(uint64_t message_bytes) {
  const uint64_t packets = (message_bytes + mtu - 1) / mtu;
  return static_cast<double>(message_bytes) /
         static_cast<double>(message_bytes + packets * uint64_t{header_bytes});
}

// `seconds`: the time in which bytes beyond those of `before` were acknowledged.
void read_flows(World& world, const Plan& plan, const Choice& choice,
                const std::vector<uint64_t>& before, double seconds, Result& result) {
  const auto after = world.acknowledged();
  const double rate = static_cast<double>(choice.bytes_per_second);
  const double alone = static_cast<double>(choice.flow_bytes) / rate + in_seconds(choice.rtt);
  std::vector<double> rates, shares;
  double last = 0;
  for (size_t i = 0; i < plan.flows.size(); ++i) {
    const Flow& flow = plan.flows[i];
    const World::Progress& one = world.flows()[i];
    Result::FlowResult out{.from = flow.from, .to = flow.to, .fair_share = flow.fair_share};
    const double share = payload_share(flow.message_bytes(choice));
    out.bytes_per_second = share * static_cast<double>(after[i] - before[i]) / seconds;
    if (choice.flow_bytes > 0 && one.finished != never) {
      out.seconds = in_seconds(one.finished - one.begun);
      out.slowdown = out.seconds / alone;
      out.bytes_per_second = static_cast<double>(choice.flow_bytes) / out.seconds;
      last = std::max(last, in_seconds(one.finished - world.begun()));
    }
    result.complete = result.complete && (choice.flow_bytes == 0 || one.finished != never);
    if (flow.fair_share > 0) {
      const double fair = flow.fair_share * rate * mtu / packet_bytes;
      result.off_fair = std::max(result.off_fair, std::abs(out.bytes_per_second / fair - 1));
    }
    rates.push_back(out.bytes_per_second);
    if (flow.each == Duration{}) {
      shares.push_back(out.bytes_per_second / (flow.fair_share > 0 ? flow.fair_share : 1));
    }
    result.flows.push_back(out);
  }
  result.jain = jain_of(shares);
  const auto capacity = static_cast<double>(plan.capacity);
  if (choice.flow_bytes == 0 && capacity > 0) {
    result.utilisation = std::accumulate(rates.begin(), rates.end(), 0.0) / capacity;
  } else if (choice.flow_bytes > 0 && result.complete) {
    const double all = static_cast<double>(choice.flow_bytes * plan.flows.size()) / capacity;
    result.last_over_ideal = last / (all + in_seconds(choice.rtt) / 2);
    result.utilisation = all / last;
  }
}

}  // namespace

Result run(World& world, const Plan& plan, const Choice& choice) {
  const Time began = read_clock();
  world.connect();
  const bool ends = choice.flow_bytes > 0;
  if (!ends && !plan.phases) go(world, plan.warm_up);
  Result result;
  const auto before = world.acknowledged();
  world.begin_samples();
  const Time from = world.now();
  plan.phases ? run_phases(world, choice, result) : go(world, plan.duration);
  read_queue(world, choice, result.queue);
  read_flows(world, plan, choice, before, in_seconds(world.now() - from), result);
  read_counters(world, result);
  result.virtual_seconds = in_seconds(world.now() - world.begun());
  result.seconds = in_seconds(read_clock() - began);
  return result;
}

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace urma::apps::simulation
