#include "apps/urma_perf/main_job.h"

#include <optional>
#include <span>

#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/interrupt.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/self.h"

namespace urma::perf {
namespace {

// The main job: a row is a device with a test and its sizes. Rows of one device stand together, and
// share a server. A row without a limit borrows that of the same case above it.
struct JobRow {
  std::string device;
  std::string_view test;
  std::span<const uint64_t> sizes;
  bool limit = true;
  std::optional<uint32_t> depth = {};
  uint32_t signal_every = 1;
};

constexpr uint64_t one_word[] = {8};
constexpr uint64_t one_line[] = {8, 64};
constexpr uint64_t slice_and_more[] = {64 << 10, 1 << 20};
constexpr uint64_t six_sizes[] = {64, 512, 4 << 10, 64 << 10, 256 << 10, 1 << 20};

std::vector<JobRow> window_rows(const std::string& window) {
  return {
      {window, "send_lat", one_word},
      {window, "write_imm_lat", one_line},
      {window, "send_bw", one_word, true, 256, 64},
      {window, "write_bw", slice_and_more},
  };
}

std::vector<JobRow> network_rows(const std::string& clean) {
  const std::string lossy = "fault(loss=5%,seed=7):" + clean;
  return {
      {clean, "write_imm_lat", six_sizes},
      {clean, "write_bw", six_sizes},
      {lossy, "write_imm_lat", six_sizes, false},
      {lossy, "write_bw", six_sizes, false},
  };
}

std::vector<JobRow> job_rows(const std::string& named) {
  if (!named.empty()) {
    const bool window = limit_kind(named) == LimitKind::shared_memory;
    return window ? window_rows(named) : network_rows(named);
  }
  std::vector<JobRow> rows = window_rows(std::string(default_device));
  for (JobRow& row : network_rows("udp:")) rows.push_back(std::move(row));
  return rows;
}

Schedule with_limit(const Options& options) {
  return {.threads_mode = options.threads_mode,
          .processors = {},
          .rounds = 5,
          .most_rounds = 6,
          .round_time = 90 * millisecond,
          .limit_time = 50 * millisecond,
          .warm_up = 50 * millisecond};
}
Schedule without_limit(const Options& options) {
  return {.threads_mode = options.threads_mode,
          .processors = {},
          .rounds = 3,
          .most_rounds = 3,
          .round_time = 150 * millisecond,
          .limit_time = 0,
          .warm_up = 20 * millisecond};
}

int64_t time_for(const SelfRun& run) {
  const Schedule& one = run.schedule;
  return static_cast<int64_t>(run.cases.size()) * one.rounds * (one.round_time + one.limit_time);
}

// However many rows there are: some 18 s, and a few for warming up and rounds to be repeated.
void make_it_fit(std::vector<SelfRun>& runs) {
  constexpr int64_t all_time = 18 * second;
  int64_t sum = 0;
  for (const SelfRun& run : runs) sum += time_for(run);
  if (sum <= all_time) return;
  for (SelfRun& run : runs) {
    for (int64_t* time :
         {&run.schedule.round_time, &run.schedule.limit_time, &run.schedule.warm_up}) {
      *time = *time * (all_time / millisecond) / (sum / millisecond);
    }
  }
}

// Of the same case, and of a limit of the same kind.
bool lends(const Result& measured, const Result& to) {
  return measured.what.test == to.what.test && measured.what.bytes == to.what.bytes &&
         limit_kind(measured.device) == limit_kind(to.device);
}

}  // namespace

std::vector<SelfRun> main_job(const Options& options) {
  std::vector<SelfRun> runs;
  for (const JobRow& row : job_rows(options.device)) {
    if (runs.empty() || runs.back().device != row.device) {
      runs.push_back({.device = row.device,
                      .peer_device = row.device,
                      .cases = {},
                      .schedule = row.limit ? with_limit(options) : without_limit(options)});
    }
    Options each = options;
    each.test = find_test(row.test);
    each.limit = row.limit;
    each.depth = row.depth;
    each.signal_every = row.signal_every;
    for (const uint64_t bytes : row.sizes) runs.back().cases.push_back(each.case_for(bytes));
  }
  make_it_fit(runs);
  return runs;
}

std::vector<SelfRun> one_test(const Options& options) {
  SelfRun run{.device = options.device.empty() ? std::string(default_device) : options.device,
              .peer_device = options.peer_device,
              .cases = options.cases(),
              .schedule = schedule_for(options)};
  if (run.peer_device.empty()) run.peer_device = run.device;
  return {run};
}

void run_self(const Options& options, const std::vector<SelfRun>& runs,
              const std::function<void(const Client&, Result&&)>& tell) {
  // Bound before anything is allocated, the child from its first instruction on.
  std::vector<int> ours = processors();
  const int theirs = ours.front();
  const bool several = ours.size() > 1;
  if (several) {
    ours.erase(ours.begin());
    pin(ours.front());
  }
  std::vector<Result> limits;
  for (const SelfRun& run : runs) {
    if (interrupted()) return;
    const ChildServer server(options, run.peer_device, several ? theirs : -1);
    Client client(options, run.device, server.at(), several ? ours : std::vector<int>{});
    for (const Case& what : run.cases) {
      if (interrupted()) return;
      Result result = client.run(what, run.schedule);
      for (const Result& other : limits) {
        if (!what.limit && lends(other, result)) result.borrow_limit(other);
      }
      if (what.limit) limits.push_back(result);
      tell(client, std::move(result));
    }
  }
}

}  // namespace urma::perf
