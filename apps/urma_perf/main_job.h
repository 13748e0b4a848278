// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "apps/urma_perf/client.h"

namespace urma::apps::perf {

// One network of --self, and what is measured on it.
struct SelfRun {
  std::string device;
  std::string peer_device;
  std::vector<Case> cases;
  Schedule schedule;
};

// Returns the runs of urma_perf --self without a test, which take some 20 seconds: sends and writes
// through the window, each with its limit; and write_imm latency and write bandwidth for six sizes,
// over a clean network and over one that loses 5 % in each direction. The latter takes the limits
// of the clean one.
std::vector<SelfRun> main_job(const Options& options);

// Returns the cases of urma_perf HOST: latency and bandwidth of reads, writes and sends, in some 13
// seconds.
std::vector<Case> main_cases(const Options& options);

// Returns the runs of --self TEST.
std::vector<SelfRun> one_test(const Options& options);

// Executes the runs one after another, each with its own server. Rows without a limit take that of
// the same case before them. Passes on each result as soon as it is known. If a run fails, its
// Failure is thrown, or passed on if there is a function for that; then the next run follows.
void run_self(const Options& options, const std::vector<SelfRun>& runs,
              const std::function<void(const Client&, Result&&)>& tell,
              const std::function<void(const SelfRun&, const Failure&)>& failed = {});

}  // namespace urma::apps::perf
