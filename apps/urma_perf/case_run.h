#pragma once

#include <exception>
#include <memory>
#include <variant>
#include <vector>

#include "apps/urma_perf/limit.h"
#include "apps/urma_perf/link.h"
#include "apps/urma_perf/ping_pong.h"
#include "apps/urma_perf/result.h"
#include "apps/urma_perf/stream.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::perf {

// How a case is measured; the server need not know.
struct Schedule {
  const ThreadsMode* threads_mode = &threads_modes.front();
  uint32_t threads = 1;
  std::vector<int> processors;  // thread i runs on the i-th, going round; empty: anywhere
  uint32_t rounds = 5;
  uint32_t most_rounds = 10;  // repeated for those that had no processor
  int64_t round_time = 400 * millisecond;
  int64_t limit_time = 400 * millisecond;
  int64_t warm_up = 200 * millisecond;
  uint64_t round_count = UINT64_MAX;  // messages, of all threads; whichever comes first
  Progress* progress = nullptr;       // where the loops report how far they are; may be null
};

// One case at the client: set up when constructed, given back when destroyed.
class CaseRun {
 public:
  CaseRun(Link& link, Device& device, const Case& what, const Schedule& schedule);

  // All rounds, or those until Ctrl-C.
  Result run();

 private:
  struct Worker {
    Jfc completions;
    std::variant<std::monostate, Stream, PingPong> loop;
    Outcome outcome;
    int64_t waited = 0;  // of its thread, if it has one of its own
    std::exception_ptr failed;
  };

  Side make_side(Device& device, const Case& what);
  void meet(Device& device);
  void warm_up();
  Round round(Result& result);
  double limit_round(int64_t time, double& waited_percent);
  // A round of ours. Returns what all workers have done.
  Outcome our_round(int64_t time, Report& report, double& waited_percent);
  void run_worker(size_t number, const Stop& stop);
  int64_t run_workers(const Stop& stop);
  void count_lost(Outcome& outcome, const Report& report) const;
  void compare_counts(const Outcome& outcome, const Report& report, Verdict& verdict) const;

  Link& link_;
  Device& device_;
  const Schedule schedule_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Side side_;
  std::unique_ptr<Limit> limit_;
};

}  // namespace urma::perf
