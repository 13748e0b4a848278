// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "apps/urma_perf/lane_calls.h"
#include "apps/urma_perf/limit.h"
#include "apps/urma_perf/link.h"
#include "apps/urma_perf/ping_pong.h"
#include "apps/urma_perf/plan_run.h"
#include "apps/urma_perf/result.h"
#include "apps/urma_perf/stages.h"
#include "apps/urma_perf/stream.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::apps::perf {

// How a case is measured. The server does not need to know it.
struct Schedule {
  const ThreadsMode* threads_mode = &threads_modes.front();
  uint32_t threads = 1;
  std::vector<int>
      processors;  // thread i runs on the i-th, modulo their number; empty means anywhere
  uint32_t rounds = 5;
  uint32_t most_rounds = 10;  // including the rounds that repeat those that had no processor
  int64_t round_time = 400 * millisecond;
  int64_t limit_time = 400 * millisecond;
  int64_t warm_up = 200 * millisecond;
  uint64_t round_count =
      UINT64_MAX;  // messages of all threads; a round ends at the time or at this count
  Progress* progress = nullptr;  // where the loops report their progress; may be null
  bool profile = false;          // the device times its stages
  double rate = 0;               // messages per second that are to be sent; 0: as many as possible
  std::shared_ptr<const Plan> plan{};  // of a test that moves blocks
  // Called after the warm-up, if there is a function: it may wait for other processes.
  std::function<void(Link&)> before_rounds{};
  // Which row of how many this is, and how long the rows after it take, for the live line.
  size_t row = 0;
  size_t rows = 0;
  int64_t later_rows_time = 0;

  // How long a row takes, if no round is repeated.
  int64_t row_time() const { return warm_up + rounds * (round_time + limit_time); }
};

// One case at the client. It is set up by the constructor and ended by the destructor.
class CaseRun {
 public:
  CaseRun(Link& link, Device& device, const Case& what, const Schedule& schedule);

  // Returns whether the server's memory is mapped here.
  bool mapped() const { return side_.other().mapped(); }
  // Runs all rounds, or those before Ctrl-C.
  Result run();

 private:
  struct Worker {
    Jfc completions;
    std::variant<std::monostate, Stream, PingPong, LaneCalls, PlanRun> loop;
    Outcome outcome;
    int64_t waited = 0;  // waiting time of the worker's thread, if it has its own
    std::exception_ptr failed;
  };

  Side make_side(Device& device, const Case& what);
  void meet(Device& device);
  void warm_up();
  Round round(Result& result);
  double limit_round(int64_t time, double& waited_percent);
  double measure_limit(int64_t time, double& waited_percent);
  // Runs a round of works. Returns the sum of what all workers have done.
  Outcome our_round(int64_t time, Report& report, double& waited_percent);
  void run_worker(size_t number, const Stop& stop);
  int64_t run_workers(const Stop& stop);
  std::optional<Profile> profile_now() const;
  double rate_of(const Outcome& outcome) const;
  void count_lost(Outcome& outcome, const Report& report) const;
  void compare_counts(const Outcome& outcome, const Report& report, Verdict& verdict) const;

  Link& link_;
  Device& device_;
  const Schedule schedule_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Side side_;
  std::unique_ptr<Limit> limit_;
  SideProfiles profiles_;     // of the latest round
  uint64_t lost_before_ = 0;  // messages that counted as lost in earlier rounds
};

}  // namespace urma::apps::perf
