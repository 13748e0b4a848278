#pragma once

#include <functional>

#include "apps/urma_perf/client.h"

namespace urma::perf {

// One network of --self, with what is measured on it.
struct SelfRun {
  std::string device;
  std::string peer_device;
  std::vector<Case> cases;
  Schedule schedule;
};

// The runs of urma_perf --self without a test, which take some 30 seconds: sends and writes through
// the window, each with its limit; write_imm latency and write bandwidth for six sizes over a clean
// network, and over one that loses 5 % in each direction, which borrows the limits of the clean
// one.
std::vector<SelfRun> main_job(const Options& options);

// The runs of --self TEST.
std::vector<SelfRun> one_test(const Options& options);

// Runs them one after the other, each with a server of its own; rows that have no limit of their
// own borrow that of the same case before them. Tells each result as soon as it is there.
void run_self(const Options& options, const std::vector<SelfRun>& runs,
              const std::function<void(const Client&, Result&&)>& tell);

}  // namespace urma::perf
