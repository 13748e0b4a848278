// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/completions.h"
#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/plan_times.h"
#include "apps/urma_perf/side.h"
#include "apps/urma_perf/stages.h"
#include "apps/urma_perf/timetable.h"
#include "apps/urma_perf/words.h"

namespace urma::apps::perf {

// The result of a loop in one round.
struct Outcome {
  uint64_t messages = 0;
  uint64_t lost = 0;    // messages that did not arrive, if some may be lost
  uint64_t unsent = 0;  // messages that were due, and were not sent when the round ended
  uint64_t windows =
      0;  // the sum of the windows that were sent, which must equal the sum at the target
  int64_t begin = 0;
  int64_t end = 0;
  // The time of the calls of lanes, of all threads, or of the transfers of plans: without checks.
  int64_t within_calls = 0;
  Histogram times;
  PlanTimes plan;
  Builds builds{false};
  Verdict verdict;

  void clear();
  void add(const Outcome& other);
};

// Posts works to a Jetty that has as many vacant berths.
void post_all(Jetty& jetty, std::span<const Work> works);
// Fails if no work of the case has completed since this time, and that is too long ago.
void check_progress(const Case& what, int64_t since);

// Keeps works outstanding on some Jetties of the client, which complete in one queue, and posts
// each again when it has completed. With one outstanding work it measures the time from post to
// completion. With a timetable it posts each work when it is due instead, or later if all works
// that may be outstanding are, and measures from the time when it was due.
//
// Works are posted in groups of `signal_every`, of which the last one is signalled: a group is
// what a completion brings back.
class Stream {
 public:
  Stream(Side& side, const std::vector<uint32_t>& jetties, Jfc& completions, bool polls,
         const std::optional<Timetable>& timetable = {});

  // Runs until `stop`, and then until all works have completed. Fails if a work fails, or if no
  // work makes progress.
  void run(const Stop& stop, Outcome& outcome);

 private:
  struct Lane {  // a group of slots of one Jetty
    uint32_t jetty;
    uint32_t first_slot;
    int64_t posted;  // the time from which its latency counts
  };

  void run_by_timetable(const Stop& stop, Outcome& outcome);
  void read_words();
  void post_vacant(uint64_t most, Outcome& outcome);
  void post_due(int64_t at, int64_t end, Outcome& outcome);
  void stage(uint32_t lane, Outcome& outcome);
  void post_staged();
  bool finish_all(std::span<const Completion> taken, Outcome& outcome);
  void finish(const Completion& completion, int64_t at, Outcome& outcome);
  void await(Outcome& outcome);
  size_t place(uint32_t jetty, uint32_t slot) const;
  uint64_t& window_at(uint32_t jetty, uint32_t slot);

  Side& side_;
  Jfc& completions_;
  Taker taker_;
  uint32_t group_;
  uint32_t fence_every_;
  Words words_;  // for atomics
  std::optional<Timetable> timetable_;
  uint64_t staged_works_ = 0;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> vacant_;  // vacant lanes
  std::vector<Work> works_;  // the first `staged_` of them are to be posted together, to one Jetty
  std::vector<uint32_t> built_for_;  // the Jetty of each work
  size_t staged_ = 0;
  uint32_t staged_for_ = 0;
  uint32_t next_window_ = 0;
  uint64_t posted_ = 0;  // works posted in this round
};

}  // namespace urma::apps::perf
