// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/counters.h"
#include "apps/urma_perf/flows.h"
#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/pattern.h"
#include "apps/urma_perf/plan_times.h"
#include "apps/urma_perf/stages.h"

namespace urma::apps::perf {

// One round of a case: its works, and the limit that was measured just before.
struct Round {
  int64_t begin = 0;  // of the works, by the monotonic clock, in nanoseconds
  double seconds = 0;
  uint64_t messages = 0;
  uint64_t lost = 0;    // lost messages, if some may be lost
  uint64_t unsent = 0;  // messages of a timetable that were not sent in time
  double p50_us = 0;
  double messages_per_second = 0;
  double limit = 0;  // in the unit of `Result::limit_unit`; 0 means not measured
  double times_limit = 0;
  double waited_percent = 0;  // for the works or for the limit, whichever waited more
  bool discarded = false;     // because its threads waited too long for a processor
  Histogram times;
  PlanTimes plan{};
  SideProfiles profiles{};
};

// A round whose threads waited for a processor longer than this is not meaningful.
inline constexpr double most_waited_percent = 10;

// The traffic of one of several paths to the server.
struct PathUse {
  Path path;         // in its state at the end
  double share = 0;  // of the sent packets
  double loss = 0;   // of the packets that were sent on it
};

// The rate and the latencies of one of several flows of a Result.
struct FlowResult {
  Flow flow;
  double p50_us = 0;
  double p99_us = 0;
  double messages_per_second = 0;
  double bytes_per_second = 0;
  uint64_t wrong = 0;
};

// The result of a case.
struct Result {
  Case what;
  std::string device;
  std::string threads_mode;
  double rate = 0;  // messages per second that were to be sent; 0: as many as possible
  Histogram times;  // of the rounds that count
  PlanTimes plan;   // of the same rounds
  std::vector<Round> rounds;
  SideProfiles profiles;  // of the rounds that count
  Verdict verdict;
  Counters counters;
  std::vector<PathUse> paths;  // empty if there is only one
  std::string_view traffic;    // the pattern of several processes; empty if there is one flow
  uint32_t processes = 0;      // of the pattern
  std::vector<FlowResult> flows;
  double overlap_percent = 100;            // of the time of all flows: in which all of them ran
  bool mapped = false;                     // the server's memory is mapped at the client
  uint64_t past_caches_from = UINT64_MAX;  // from Statistics
  std::string limit_pattern;  // the loop that measured the limit; empty if there is no limit
  bool limit_of_clean_network = false;  // the limit was measured for another row

  double us(double part) const {
    return static_cast<double>(times.percentile(part)) / what.test->units_per_us();
  }
  double mean_us() const { return times.mean() / what.test->units_per_us(); }
  // Returns the standard deviation.
  double deviation_us() const { return times.deviation() / what.test->units_per_us(); }
  double max_us() const { return static_cast<double>(times.max()) / what.test->units_per_us(); }
  // For blocks: the medians of the times beside the transfer, and how much of the rate of the one
  // write the transfer reaches.
  double prep_us() const { return static_cast<double>(plan.prep.percentile(0.5)) / 1e3; }
  double post_us() const { return static_cast<double>(plan.post.percentile(0.5)) / 1e3; }
  double one_write_us() const { return static_cast<double>(plan.one_write.percentile(0.5)) / 1e3; }
  double of_one_write() const { return us(0.5) > 0 ? one_write_us() / us(0.5) : 0; }
  // Returns the number of messages in the rounds that count.
  uint64_t messages() const;
  // Returns how long these rounds took.
  double seconds() const;
  double messages_per_second() const;
  double bytes_per_second() const;
  double waited_percent() const;
  // Returns the share of the sent messages that was lost, in the rounds that count.
  double lost_percent() const;
  // Return the share of the rate that was reached, how many messages were due and not sent, and
  // whether the rate was reached. Otherwise latencies grow with the duration of a round.
  double rate_percent() const;
  uint64_t unsent() const;
  bool rate_reached() const;

  // Returns nothing if there is no limit.
  std::optional<double> limit() const;
  double times_limit() const;
  double least_times_limit() const;
  double most_times_limit() const;
  // Returns the unit in which the limit is compared: "us", "messages_per_second" or
  // "bytes_per_second".
  std::string limit_unit() const;

  // Called after the last round. Discards the rounds that waited too long, if at least half of the
  // wanted rounds remain; otherwise keeps all. Makes `times` and `profiles` from the remaining
  // ones.
  void settle(size_t wanted);
  size_t discarded() const;
  // Adds a flow that was measured at the same time: rates are added, times merged.
  void add_flow(const Flow& flow, const Result& one);

  // Calculates how many times slower a round is than its limit.
  void compare(Round& round) const;
  // Uses the limit that another case has measured, for all rounds.
  void borrow_limit(const Result& other);

 private:
  int64_t all_began_ = 0;  // when the last flow began
  int64_t first_ended_ = 0;
};

// Returns whether the bandwidth is compared by the number of messages (small ones) or by bytes
// (large ones).
bool compared_in_messages(const Case& what);

double median(std::vector<double> values);

}  // namespace urma::apps::perf
