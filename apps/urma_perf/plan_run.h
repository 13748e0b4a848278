// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "apps/urma_perf/completions.h"
#include "apps/urma_perf/plan.h"
#include "apps/urma_perf/side.h"
#include "apps/urma_perf/stream.h"

namespace urma::apps::perf {

// Moves the blocks of a plan to the server again and again, in turns with one write of as many
// bytes. The works of all blocks are one post; with scatter lists the works of a list are one, and
// the next list follows when it has completed.
//
//   prep      makes the works from the blocks
//   post      the calls that post them
//   transfer  from the first post to the last completion; recorded as the time of a message
class PlanRun {
 public:
  PlanRun(Side& side, const Plan& plan, Jfc& completions, bool polls);

  // Runs until `stop`, and at least once. Fails if a work fails, or if no work makes progress. At
  // the end the ledger says which blocks the server is to check.
  void run(const Stop& stop, Outcome& outcome);

 private:
  // The works of a list: [begin, end) of `gathers_`, and so of `works_`.
  struct List {
    size_t begin = 0;
    size_t end = 0;
  };

  void write_once(Outcome& outcome);
  void move(Outcome& outcome);
  void prepare();
  void post(std::span<const Work> works);
  void await();
  void note_blocks();
  std::span<const std::byte> source(uint64_t offset, uint64_t bytes) const;
  uint64_t target(uint64_t offset) const;
  void next_window();

  Side& side_;
  Jfc& completions_;
  Taker taker_;
  std::vector<Block> blocks_;
  std::vector<Gather> gathers_;
  std::vector<List> lists_;
  std::vector<Buffer> pieces_;  // of all works that gather several blocks
  std::vector<Work> works_;
  uint32_t window_ = 0;
};

}  // namespace urma::apps::perf
