// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/failure.h"
#include "apps/common/output.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/layout.h"
#include "apps/urma_perf/live.h"

namespace urma::apps::perf {
namespace {

Service service_of(const Options& options) {
  Service service =
      service_for(options.test != nullptr ? options.test->name : "TEST", options.self);
  service.device = options.device;
  // The server is a process of this program, which a busy machine may start late.
  if (options.self) service.patience = std::chrono::seconds(20);
  return service;
}

// A round ends at its time, or at its number of messages.
std::string length_of_round(const Schedule& schedule) {
  return schedule.round_count == UINT64_MAX ? fmt::format("{:.3f} s", seconds(schedule.round_time))
                                            : fmt::format("{} messages", schedule.round_count);
}

}  // namespace

Client::Client(const Options& options, const std::string& device, const std::string& host,
               std::vector<int> processors)
    : options_(options),
      device_text_(device.empty() ? device_towards(host) : device),
      processors_(std::move(processors)),
      device_(captures_.watch(open_device(device_text_, {*options.threads_mode, options.retransmit,
                                                         options.congestion, options.profile}))),
      link_(device_, host, service_of(options), options.speaks.value_or(protocol)) {
  if (!options.verbose) return;
  print_error(fmt::format("client: {}\nserver: {}", description(), server_description()));
}

std::string Client::why_not_mapped(const Case& what) const {
  if (options_.own_memory) return "--private";
  if (options_.gpu) return "--memory";
  if (!device_text_.starts_with("cxl:")) return device_text_ + " maps no memory of peers";
  if (description().find("not coherent") != std::string::npos) return "the window is not coherent";
  return fmt::format("the window has less than 8M, or no {} left for segments",
                     size_text(Layout(what).bytes()));
}

Result Client::run(const Case& what, const Schedule& schedule) {
  Schedule mine = schedule;
  mine.processors = processors_;
  if (options_.verbose) {
    print_error(fmt::format("{}, threads {}, {}, {} round{} of {}", parameters_text(what),
                            mine.threads, mine.threads_mode->name, mine.rounds,
                            mine.rounds == 1 ? "" : "s", length_of_round(mine)));
  }
  Result result = measure(what, mine);
  result.device = device_text_;
  result.threads_mode = mine.threads_mode->name;
  if (!options_.verbose) return result;
  print_error(fmt::format(
      "  {}", result.mapped ? "writes and reads are copies by the client: the server's memory lies "
                              "in the window, which both map"
                            : "all goes by packets: " + why_not_mapped(what)));
  if (result.mapped && what.bytes >= result.past_caches_from) {
    print_error(fmt::format("  past the caches: here that is faster from {} on",
                            size_text(result.past_caches_from)));
  }
  for (const Round& round : result.rounds) {
    const std::string limit =
        round.limit == 0 ? ""
                         : fmt::format(", limit {:.4g}, x {:.2f}", round.limit, round.times_limit);
    print_error(fmt::format("  {:.3f} s: {} messages, {:.0f}/s, p50 {:.2f} us{}, wait {:.1f} %{}",
                            round.seconds, round.messages, round.messages_per_second, round.p50_us,
                            limit, round.waited_percent, round.discarded ? ", discarded" : ""));
  }
  return result;
}

Result Client::measure(const Case& what, Schedule& schedule) {
  Live live({.form = Live::form_for(options_),
             .what = what,
             .device = device_text_,
             .schedule = schedule,
             .counters = [this] {
               const auto all = device_.stats();
               return all ? std::optional(*all) : std::nullopt;
             }});
  if (schedule.progress == nullptr) schedule.progress = live.progress();
  CaseRun run(link_, device_, what, schedule);
  if (what.test->lane && !run.mapped()) {
    usage(lane_without_mapping(*what.test, why_not_mapped(what)));
  }
  Result result = run.run();
  live.end();
  return result;
}

Schedule schedule_for(const Options& options) {
  constexpr int64_t longest_limit = second / 2;
  constexpr int64_t longest_warm_up = second / 5;
  const auto time = static_cast<int64_t>(options.seconds_each() * 1e9 / options.rounds);
  Schedule schedule{.threads_mode = options.threads_mode,
                    .threads = options.threads,
                    .processors = {},
                    .rounds = options.rounds,
                    // Rounds at the same time as those of other processes are not repeated.
                    .most_rounds = options.mode == Options::Mode::group ? 1 : 2 * options.rounds,
                    .round_time = time,
                    .limit_time = std::min(time, longest_limit),
                    .warm_up = std::min(time / 2, longest_warm_up),
                    .profile = options.profile,
                    .rate = options.rate.value_or(0),
                    .plan = options.plan};
  if (options.count) {
    schedule.round_count = std::max<uint64_t>(*options.count / options.rounds, 1);
  }
  return schedule;
}

}  // namespace urma::apps::perf
