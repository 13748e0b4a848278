#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/counters.h"
#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/pattern.h"

namespace urma::perf {

// One round of a case: ours, and the limit measured just before it.
struct Round {
  double seconds = 0;
  uint64_t messages = 0;
  uint64_t lost = 0;  // besides, where they may be
  double p50_us = 0;
  double messages_per_second = 0;
  double limit = 0;  // in the unit of `Result::limit_unit`; 0: not measured
  double times_limit = 0;
  double waited_percent = 0;  // of ours or the limit, whichever waited more
  bool discarded = false;     // for having waited too long
  Histogram times;
};

// A round whose threads had no processor for longer than this says nothing.
inline constexpr double most_waited_percent = 10;

// The traffic of one of several paths to the server.
struct PathUse {
  Path path;         // as it was at the end
  double share = 0;  // of the packets that were sent
  double loss = 0;   // of those sent there
};

// The result of a case.
struct Result {
  Case what;
  std::string device;
  std::string threads_mode;
  Histogram times;  // of the rounds that count
  std::vector<Round> rounds;
  Verdict verdict;
  Counters counters;
  std::vector<PathUse> paths;              // none: there is one only
  bool mapped = false;                     // the server's memory, here
  uint64_t past_caches_from = UINT64_MAX;  // Statistics
  std::string limit_pattern;               // what the limit was measured by; empty: there is none
  bool limit_of_clean_network = false;     // measured for another row

  double us(double part) const { return static_cast<double>(times.percentile(part)) / 1000; }
  double max_us() const { return static_cast<double>(times.max()) / 1000; }
  double messages_per_second() const;
  double bytes_per_second() const;
  double waited_percent() const;
  // The part of the sent messages that was lost, in the rounds that count.
  double lost_percent() const;

  // Nothing without a limit.
  std::optional<double> limit() const;
  double times_limit() const;
  double least_times_limit() const;
  double most_times_limit() const;
  // "us", "messages_per_second" or "bytes_per_second": what the limit is compared by.
  std::string limit_unit() const;

  // After the last round: discards those that waited too long, if at least half of what was wanted
  // remains (else they are what there is), and makes `times` of the others.
  void settle(size_t wanted);
  size_t discarded() const;

  // Fills in how many times slower a round is than its limit.
  void compare(Round& round) const;
  // The limit that another case measured, for all rounds.
  void borrow_limit(const Result& other);
};

// A bandwidth of small messages is about their number, of large ones about bytes.
bool compared_in_messages(const Case& what);

double median(std::vector<double> values);

}  // namespace urma::perf
