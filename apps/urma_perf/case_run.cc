// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t limit_patience = second;

// Returns the share of the packets and the losses of each path, between two moments.
std::vector<PathUse> used(const std::vector<Path>& begin, const std::vector<Path>& end) {
  std::vector<PathUse> out;
  // The server has restarted, and has other paths.
  if (begin.size() != end.size()) return out;
  uint64_t all = 0;
  for (size_t i = 0; i < end.size(); ++i) all += end[i].sent - begin[i].sent;
  for (size_t i = 0; i < end.size(); ++i) {
    const auto sent = static_cast<double>(end[i].sent - begin[i].sent);
    const auto lost = static_cast<double>(end[i].lost - begin[i].lost);
    out.push_back({.path = end[i],
                   .share = all > 0 ? sent / static_cast<double>(all) : 0,
                   .loss = sent > 0 ? lost / sent : 0});
  }
  return out;
}

// The number of berths and receives of a Jetty. There are twice as many receives, because as many
// immediates may wait.
uint32_t completions_for(const Case& what) { return what.test->ping_pong() ? 256 : 2 * what.depth; }

// Waits are counted for a little longer than rounds, so in a short round they may be longer than
// it.
double percent(int64_t part, int64_t whole) {
  return 100 * std::min(1.0, static_cast<double>(part) /
                                 static_cast<double>(std::max<int64_t>(whole, 1)));
}

}  // namespace

CaseRun::CaseRun(Link& link, Device& device, const Case& what, const Schedule& schedule)
    : link_(link), device_(device), schedule_(schedule), side_(make_side(device, what)) {
  if (what.limit) limit_ = make_limit(device, side_, Place::client);
  meet(device);
  std::vector<std::vector<uint32_t>> jetties(workers_.size());
  for (uint32_t i = 0; i < what.jetties; ++i) jetties[i % jetties.size()].push_back(i);
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    if (what.test->lane) {
      worker.loop.emplace<LaneCalls>(side_, jetties[i].front(), worker.completions);
    } else if (what.test->plan) {
      worker.loop.emplace<PlanRun>(side_, *schedule.plan, worker.completions,
                                   schedule.threads_mode->polls);
    } else if (what.test->ping_pong()) {
      worker.loop.emplace<PingPong>(side_, jetties[i], worker.completions,
                                    schedule.threads_mode->polls);
    } else {
      const auto number = static_cast<uint32_t>(i);
      worker.loop.emplace<Stream>(
          side_, jetties[i], worker.completions, schedule.threads_mode->polls,
          schedule.rate > 0 ? std::optional(Timetable(schedule.rate, number, schedule.threads))
                            : std::nullopt);
    }
  }
}

// The Jetties of each worker complete into a queue of that worker.
Side CaseRun::make_side(Device& device, const Case& what) {
  const uint32_t jetties_each = (what.jetties + schedule_.threads - 1) / schedule_.threads;
  std::vector<Jfc*> queues;
  for (uint32_t i = 0; i < schedule_.threads; ++i) {
    Jfc queue = must(device.jfc(jetties_each * completions_for(what)), "a completion queue");
    workers_.push_back(std::make_unique<Worker>(
        Worker{.completions = std::move(queue), .loop = {}, .outcome = {}, .failed = {}}));
    workers_.back()->outcome.builds = Builds(schedule_.profile);
    queues.push_back(&workers_.back()->completions);
  }
  return Side(device, what, Place::client, queues);
}

void CaseRun::meet(Device& device) {
  const Setup setup{
      .what = side_.what(), .side = side_.describe(), .raw = limit_ ? limit_->told() : ""};
  // The server allocates and touches as much memory as this side did.
  const auto ready = link_.ask<Ready>("setup", setup, 60 * second);
  side_.meet(device, ready.side);
  if (limit_) limit_->meet(ready.raw);
}

Result CaseRun::run() {
  Result result;
  result.what = side_.what();
  result.mapped = mapped();
  result.rate = schedule_.rate;
  if (limit_) result.limit_pattern = limit_->pattern();
  const Statistics begin = must(device_.stats(), "statistics");
  const auto paths = must(device_.paths(link_.server()), "paths");
  warm_up();
  if (schedule_.before_rounds) schedule_.before_rounds(link_);
  uint32_t good = 0;
  for (uint32_t i = 0; i < schedule_.most_rounds && good < schedule_.rounds; ++i) {
    if (interrupted()) break;
    Round done = round(result);
    if (done.waited_percent <= most_waited_percent) ++good;
    if (done.messages > 0) result.rounds.push_back(std::move(done));
  }
  result.settle(schedule_.rounds);
  const auto totals = link_.ask<Totals>("finish", nullptr);
  const Statistics end = must(device_.stats(), "statistics");
  result.paths = used(paths, must(device_.paths(link_.server()), "paths"));
  result.past_caches_from = end.past_caches_from;
  result.counters = combine(difference(end, begin), totals.counters);
  return result;
}

void CaseRun::warm_up() {
  Report report;
  double waited = 0;
  if (limit_) limit_round(schedule_.warm_up / 4, waited);
  lost_before_ = our_round(schedule_.warm_up, report, waited).lost;
}

Round CaseRun::round(Result& result) {
  Round round;
  double limit_waited = 0;
  if (limit_) round.limit = limit_round(schedule_.limit_time, limit_waited);
  if (interrupted()) return round;
  Report report;
  Outcome outcome = our_round(schedule_.round_time, report, round.waited_percent);
  round.waited_percent = std::max(round.waited_percent, limit_waited);
  round.begin = outcome.begin;
  round.seconds = seconds(outcome.end - outcome.begin);
  if (side_.what().ordering.unreliable()) count_lost(outcome, report);
  round.messages = outcome.messages;
  round.lost = outcome.lost;
  round.unsent = outcome.unsent;
  round.p50_us =
      static_cast<double>(outcome.times.percentile(0.5)) / side_.what().test->units_per_us();
  round.messages_per_second = rate_of(outcome);
  round.times = std::move(outcome.times);
  round.plan = std::move(outcome.plan);
  round.profiles = profiles_;
  result.compare(round);
  result.verdict.add(outcome.verdict);
  result.verdict.add(report.verdict);
  compare_counts(outcome, report, result.verdict);
  lost_before_ += outcome.lost;
  return round;
}

// Returns the messages per second. Between two groups of calls of a lane their bytes are checked,
// which takes longer than the calls, so only the time of the calls counts; between two transfers of
// blocks is the one write. Threads call at the same time, so each has its part of the sum of their
// times.
double CaseRun::rate_of(const Outcome& outcome) const {
  const bool calls = side_.what().test->lane || side_.what().test->plan;
  const double time = calls ? seconds(outcome.within_calls) / static_cast<double>(workers_.size())
                            : seconds(outcome.end - outcome.begin);
  return time > 0 ? static_cast<double>(outcome.messages) / time : 0;
}

// Messages that did not arrive are not counted in rates.
void CaseRun::count_lost(Outcome& outcome, const Report& report) const {
  if (!side_.what().test->bandwidth() || report.messages > outcome.messages) return;
  outcome.lost = outcome.messages - report.messages;
  outcome.messages = report.messages;
}

// The server must have been notified exactly once of each message that was sent.
void CaseRun::compare_counts(const Outcome& outcome, const Report& report, Verdict& verdict) const {
  if (!side_.what().test->told() || interrupted()) return;
  // One of the two messages of a lost round trip may have arrived, also in a later round, and it is
  // not known which ones were lost.
  const uint64_t most = outcome.messages + outcome.lost + lost_before_;
  const bool may_differ = side_.what().ordering.unreliable() && report.messages <= most;
  if (may_differ) return;
  const uint64_t least = std::min(outcome.messages, report.messages);
  const uint64_t apart = std::max(outcome.messages, report.messages) - least;
  for (uint64_t i = 0; i < apart; ++i) {
    verdict.count(
        fmt::format("{} messages were sent and {} arrived", outcome.messages, report.messages));
  }
  // The first word of a message says which one it is.
  const bool decodable = side_.what().verify && side_.what().bytes >= sizeof(uint64_t);
  const bool which_known = decodable || side_.what().test->immediate;
  if (apart == 0 && which_known && outcome.windows != report.windows) {
    verdict.count("as many messages arrived as were sent, but not the same ones");
  }
}

// ---- the limit

// On a busy machine the server may not run at all in a short round, and nothing arrives: then the
// round is repeated, each time twice as long.
double CaseRun::limit_round(int64_t time, double& waited_percent) {
  const int64_t until = now() + limit_patience;
  double limit = 0;
  do {
    limit = measure_limit(time, waited_percent);
    time *= 2;
  } while (limit == 0 && now() < until && !interrupted());
  return limit;
}

// Measures the limit, in the unit in which the result is compared with it.
double CaseRun::measure_limit(int64_t time, double& waited_percent) {
  link_.tell("begin", Begin{.limit = true});
  limit_->begin();
  const int64_t waited_before = waited_for_processor();
  const int64_t end = now() + time;
  // A round trip may take longer than a short round, so the round continues until something was
  // measured.
  const auto nothing_yet = [&](int64_t at) {
    return !side_.what().test->bandwidth() && limit_->round_trips().count() == 0 &&
           at < end + limit_patience;
  };
  for (int64_t at = now(); (at < end || nothing_yet(at)) && !interrupted(); at = now()) {
    limit_->run(at < end ? std::min(at + millisecond, end) : at + millisecond);
    // So that the server does not consider this client dead.
    link_.keep_alive();
  }
  const auto report = link_.ask<Report>("end", nullptr);
  waited_percent = percent(std::max(waited_for_processor() - waited_before, report.waited), time);
  if (!side_.what().test->bandwidth()) {
    const Histogram& times = limit_->round_trips();
    if (times.count() == 0 && !interrupted()) {
      throw Failure(Exit::peer_lost, "--limit: " + limit_->why_silent());
    }
    const double whole =
        static_cast<double>(times.percentile(0.5)) / side_.what().test->units_per_us();
    return side_.what().test->ping_pong() ? whole / 2 : whole;
  }
  const double rate =
      limit_->receives() ? limit_->tally().bytes_per_second() : report.raw_bytes_per_second;
  return compared_in_messages(side_.what()) ? rate / static_cast<double>(side_.what().bytes) : rate;
}

// ---- a round of works

Outcome CaseRun::our_round(int64_t time, Report& report, double& waited_percent) {
  std::ranges::fill(side_.ledger(), Side::never_written);
  link_.tell("begin", Begin{.limit = false});
  // A raw loop may have used that memory in between.
  if (side_.what().test->atomics()) {
    link_.read(side_.landing(), side_.other(), side_.layout().landing_begin());
  }
  const auto profiled = profile_now();
  const int64_t waited = run_workers(
      {.at = now() + time, .count = schedule_.round_count, .progress = schedule_.progress});
  const auto profiled_until = profile_now();
  Outcome all;
  for (const auto& worker : workers_) {
    if (worker->failed) std::rethrow_exception(worker->failed);
    all.add(worker->outcome);
  }
  const Case& what = side_.what();
  if (what.verify && what.test->lands_unseen()) {
    link_.write(std::as_bytes(side_.ledger()), side_.other(), 0);
  }
  report = link_.ask<Report>("end", nullptr, 60 * second);
  if (profiled) {
    profiles_.client = between(*profiled, *profiled_until, static_cast<uint32_t>(workers_.size()));
    profiles_.client->build = all.builds.time();
    profiles_.server = report.profile;
  }
  waited_percent = percent(std::max(waited, report.waited), all.end - all.begin);
  return all;
}

std::optional<Profile> CaseRun::profile_now() const {
  if (!schedule_.profile) return std::nullopt;
  return must(device_.profile(), "the times of stages");
}

// Runs one worker on this thread, or several on a thread each. Returns the time for which they
// waited for a processor.
int64_t CaseRun::run_workers(const Stop& stop) {
  const int64_t waited = waited_for_processor();
  if (workers_.size() == 1) {
    run_worker(0, stop);
    return waited_for_processor() - waited;
  }
  Stop each = stop;
  if (stop.count != UINT64_MAX) {
    each.count = std::max<uint64_t>(stop.count / workers_.size(), 1);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers_.size(); ++i) {
    threads.emplace_back([this, i, each] {
      if (!schedule_.processors.empty()) {
        pin(schedule_.processors[i % schedule_.processors.size()]);
      }
      run_worker(i, each);
      workers_[i]->waited = waited_for_processor_this_thread();
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t sum = waited_for_processor() - waited;
  for (const auto& worker : workers_) sum += worker->waited;
  return sum;
}

void CaseRun::run_worker(size_t number, const Stop& stop) {
  Worker& worker = *workers_[number];
  worker.outcome.clear();
  try {
    if (auto* stream = std::get_if<Stream>(&worker.loop)) stream->run(stop, worker.outcome);
    if (auto* calls = std::get_if<LaneCalls>(&worker.loop)) calls->run(stop, worker.outcome);
    if (auto* plan = std::get_if<PlanRun>(&worker.loop)) plan->run(stop, worker.outcome);
    if (auto* bounce = std::get_if<PingPong>(&worker.loop)) bounce->run(stop, worker.outcome);
  } catch (const std::exception&) {
    worker.failed = std::current_exception();
  }
}

}  // namespace urma::apps::perf
