#include "apps/urma_perf/main_job.h"

#include <fmt/format.h>

#include "apps/urma_perf/interrupt.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/self.h"

namespace urma::perf {
namespace {

constexpr std::string_view job_tests[] = {"write_imm_lat", "write_bw"};
constexpr uint64_t job_sizes[] = {64, 512, 4 << 10, 64 << 10, 256 << 10, 1 << 20};

std::vector<Case> job_cases(const Options& options, bool limit) {
  std::vector<Case> cases;
  for (const std::string_view name : job_tests) {
    Options each = options;
    each.test = find_test(name);
    each.limit = limit;
    for (const uint64_t bytes : job_sizes) cases.push_back(each.case_for(bytes));
  }
  return cases;
}

bool same(const Case& a, const Case& b) { return a.test == b.test && a.bytes == b.bytes; }

}  // namespace

std::vector<SelfRun> main_job(const Options& options) {
  const std::string clean = options.device.empty() ? "udp:" : options.device;
  const std::string lossy = "fault(loss=5%,seed=7):" + clean;
  // 12 cases of 5 * (90 + 50) ms, 12 of 3 * 150 ms, and warming up: some 16 s, and a few rounds to
  // be repeated.
  return {{.device = clean,
           .peer_device = clean,
           .cases = job_cases(options, true),
           .schedule = {.inlined = options.inlined,
                        .processors = {},
                        .rounds = 5,
                        .most_rounds = 6,
                        .round_time = 90 * millisecond,
                        .limit_time = 50 * millisecond,
                        .warm_up = 50 * millisecond}},
          {.device = lossy,
           .peer_device = lossy,
           .cases = job_cases(options, false),
           .schedule = {.inlined = options.inlined,
                        .processors = {},
                        .rounds = 3,
                        .most_rounds = 3,
                        .round_time = 150 * millisecond,
                        .limit_time = 0,
                        .warm_up = 20 * millisecond}}};
}

std::vector<SelfRun> one_test(const Options& options) {
  SelfRun run{.device = options.device.empty() ? "udp:" : options.device,
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
        if (!what.limit && same(other.what, what)) result.borrow_limit(other);
      }
      if (what.limit) limits.push_back(result);
      tell(client, std::move(result));
    }
  }
}

}  // namespace urma::perf
