// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "apps/urma_perf/draw.h"
#include "apps/urma_perf/side.h"
#include "apps/urma_perf/stream.h"
#include "apps/urma_perf/words.h"

namespace urma::apps::perf {

// Calls of a lane (Jetty::lane) of one Jetty, by one thread. Reading the clock takes as long as
// several calls, so the time of a group of calls is measured, and each of them is recorded with its
// part of it. Each call of a group uses a slot of its own, so that all of them can be checked after
// the second reading of the clock.
class LaneCalls {
 public:
  LaneCalls(Side& side, uint32_t jetty, Jfc& completions);

  // Opens the lane, which only this thread may use then, and calls it until `stop`. Fails if a call
  // fails.
  void run(const Stop& stop, Outcome& outcome);

 private:
  struct Call {
    std::span<const std::byte> from;  // what a write copies
    std::span<std::byte> to;          // where a read copies to
    uint64_t offset = 0;              // in the other side's memory
    Words::Operands operands{};
    uint64_t fetched = 0;
  };

  void read_words();
  void stage(uint32_t slot);
  Status make(urma::Lane& lane, std::span<Call> calls) const;
  template <class Word>
  Status change(urma::Lane& lane, std::span<Call> calls) const;
  void record(int64_t took, std::span<const Call> calls, Outcome& outcome) const;
  void check(uint32_t slot, Verdict& verdict);
  size_t place(uint32_t slot) const;

  Side& side_;
  const uint32_t jetty_;
  Jfc& completions_;
  Words words_;  // for atomics
  Draw draw_;
  std::vector<Call> calls_;  // of a group: call i uses slot i
  uint32_t next_window_ = 0;
};

}  // namespace urma::apps::perf
