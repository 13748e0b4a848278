// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/main_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/choice.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/self.h"

namespace urma::apps::perf {
namespace {

// A row of the main job: a device with a test and its sizes. Rows of one device follow each other,
// and share a server. A row without a limit takes that of the same case above it.
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
constexpr uint64_t one_short_line[] = {64};
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

std::string lossy_as(const std::string& clean) { return "fault(loss=5%,seed=7):" + clean; }

std::vector<JobRow> network_rows(const std::string& clean) {
  const std::string lossy = lossy_as(clean);
  return {
      {clean, "write_imm_lat", six_sizes},
      {clean, "write_bw", six_sizes},
      {lossy, "write_imm_lat", six_sizes, false},
      {lossy, "write_bw", six_sizes, false},
  };
}

// The ten rows that say most.
std::vector<JobRow> short_window_rows(const std::string& window) {
  return {
      {window, "send_lat", one_word},
      {window, "write_imm_lat", one_short_line},
      {window, "write_bw", slice_and_more},
  };
}

std::vector<JobRow> short_network_rows(const std::string& clean) {
  const std::string lossy = lossy_as(clean);
  return {
      {clean, "write_imm_lat", one_short_line},
      {clean, "write_bw", slice_and_more},
      {lossy, "write_imm_lat", one_short_line, false},
      {lossy, "write_bw", slice_and_more, false},
  };
}

std::vector<JobRow> job_rows(const Options& options) {
  const auto window = options.brief ? short_window_rows : window_rows;
  const auto network = options.brief ? short_network_rows : network_rows;
  const std::string& named = options.device;
  if (!named.empty()) {
    return limit_kind(named) == LimitKind::shared_memory ? window(named) : network(named);
  }
  std::vector<JobRow> rows = window(std::string(default_device));
  for (JobRow& row : network("udp:")) rows.push_back(std::move(row));
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
  return static_cast<int64_t>(run.cases.size()) * run.schedule.row_time();
}

// Adapts the time to the number of rows: all rows take some 18 s, plus a few for warm-up and
// repeated rounds.
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

// Returns the server's device for a row with this one: the same, or the one of --peer-device with
// the same impairments.
std::string peer_of(const Options& options, const std::string& device) {
  if (options.peer_device.empty()) return device;
  const bool lossy = device != options.device && device.ends_with(options.device);
  return (lossy ? device.substr(0, device.size() - options.device.size()) : "") +
         options.peer_device;
}

// Returns the same device with other captures: `file=/tmp/x.pcapng` becomes
// `file=/tmp/x-peer.pcapng`.
std::string with_other_captures(std::string device) {
  constexpr std::string_view option = "file=";
  for (size_t at = 0; (at = device.find(option, at)) != device.npos;) {
    at += option.size();
    const size_t end = std::min(device.find_first_of(",)", at), device.size());
    const size_t dot = device.rfind('.', end);
    const size_t slash = device.rfind('/', end);
    const bool has_ending = dot != device.npos && dot > at && (slash == device.npos || dot > slash);
    device.insert(has_ending ? dot : end, "-peer");
  }
  return device;
}

// Returns the Failure if both sides would write the same capture.
Failure captured_by_both(const Failure& failure, const Options& options) {
  const std::string what = failure.what();
  return {failure.exit(), fmt::format("{}. Fix: name another file for the server: --peer-device {}",
                                      what.substr(0, what.find(". Fix: ")),
                                      apps::quoted(with_other_captures(options.device)))};
}

Client make_client(const Options& options, const SelfRun& run, const std::string& at,
                   std::vector<int> processors) {
  try {
    return Client(options, run.device, at, std::move(processors));
  } catch (const Failure& failure) {
    const bool both = std::string_view(failure.what()).find("being written by another device") !=
                      std::string_view::npos;
    if (both && run.device == run.peer_device) throw captured_by_both(failure, options);
    throw;
  }
}

// Returns whether the limit of a result is valid for another one: it must have the same case, and
// the same kind of limit.
bool lends(const Result& measured, const Result& to) {
  return measured.what.test == to.what.test && measured.what.bytes == to.what.bytes &&
         limit_kind(measured.device) == limit_kind(to.device);
}

}  // namespace

std::vector<SelfRun> main_job(const Options& options) {
  std::vector<SelfRun> runs;
  for (const JobRow& row : job_rows(options)) {
    if (runs.empty() || runs.back().device != row.device) {
      runs.push_back({.device = row.device,
                      .peer_device = peer_of(options, row.device),
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

std::vector<Case> main_cases(const Options& options) {
  constexpr std::pair<std::string_view, uint64_t> rows[] = {
      {"write_imm_lat", 64},  {"send_lat", 64},      {"read_lat", 64},
      {"write_bw", 64 << 10}, {"read_bw", 64 << 10}, {"send_bw", 64}};
  std::vector<Case> cases;
  for (const auto& [test, bytes] : rows) {
    Options each = options;
    each.test = find_test(test);
    each.limit = true;
    cases.push_back(each.case_for(bytes));
  }
  return cases;
}

std::vector<SelfRun> one_test(const Options& options) {
  SelfRun run{.device = options.device.empty() ? std::string(default_device) : options.device,
              .peer_device = options.peer_device,
              .cases = options.cases(),
              .schedule = schedule_for(options)};
  if (run.peer_device.empty()) run.peer_device = run.device;
  return {run};
}

namespace {

// The processors of both sides of --self.
struct SelfProcessors {
  int server = -1;          // any
  std::vector<int> client;  // empty means any
};

// This process is bound before anything is allocated, and the child from its start on.
SelfProcessors divide_processors() {
  std::vector<int> ours = processors();
  if (ours.size() < 2) return {};
  const int theirs = ours.front();
  ours.erase(ours.begin());
  pin(ours.front());
  return {.server = theirs, .client = std::move(ours)};
}

// The place of a row among all rows.
struct Position {
  size_t row = 0;
  size_t rows = 0;
  int64_t left = 0;
};

Position before_all(const std::vector<SelfRun>& runs) {
  Position position;
  for (const SelfRun& run : runs) {
    position.rows += run.cases.size();
    position.left += time_for(run);
  }
  return position;
}

}  // namespace

void run_self(const Options& options, const std::vector<SelfRun>& runs,
              const std::function<void(const Client&, Result&&)>& tell,
              const std::function<void(const SelfRun&, const Failure&)>& failed) {
  const SelfProcessors each = divide_processors();
  if (options.verbose) {
    print_error(fmt::format("processors: of the client {}, of the server {}",
                            processor_text(each.client.empty() ? -1 : each.client.front()),
                            processor_text(each.server)));
  }
  std::vector<Result> limits;
  Position position = before_all(runs);
  const auto run_one = [&](const SelfRun& run) {
    const ChildServer server(options, run.peer_device, each.server);
    Client client = make_client(options, run, server.at(), each.client);
    Schedule schedule = run.schedule;
    for (const Case& what : run.cases) {
      if (interrupted()) return;
      position.left -= schedule.row_time();
      schedule.row = ++position.row;
      schedule.rows = position.rows;
      schedule.later_rows_time = position.left;
      Result result = client.run(what, schedule);
      for (const Result& other : limits) {
        if (!what.limit && lends(other, result)) result.borrow_limit(other);
      }
      if (what.limit) limits.push_back(result);
      tell(client, std::move(result));
    }
  };
  for (const SelfRun& run : runs) {
    if (interrupted()) return;
    try {
      run_one(run);
    } catch (const Failure& failure) {
      if (!failed || interrupted()) throw;
      failed(run, failure);
    }
  }
}

}  // namespace urma::apps::perf
