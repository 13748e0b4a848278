// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "apps/urma_perf/clock.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

inline void sum(StageTime& all, const StageTime& one) {
  all.times += one.times;
  all.total += one.total;
  all.long_times += one.long_times;
  all.long_total += one.long_total;
}

// The building of works, which this program times by itself: to the library it is not a stage.
class Builds {
 public:
  explicit Builds(bool timed) : timed_(timed) {}

  int64_t begin() const { return timed_ ? now() : 0; }
  void end(int64_t begin, uint64_t works) {
    if (!timed_) return;
    const int64_t took = now() - begin;
    sum(time_, {.times = works, .total = Duration(took)});
    if (took > millisecond) sum(time_, {.long_times = 1, .long_total = Duration(took)});
    ++readings_;
  }
  void add(const Builds& other) {
    sum(time_, other.time_);
    readings_ += other.readings_;
  }
  void clear() {
    time_ = {};
    readings_ = 0;
  }
  // Returns the time of building, without that of reading the clock.
  StageTime time() const {
    StageTime out = time_;
    const Duration cost(static_cast<int64_t>(readings_) * clock_cost());
    out.total = std::max(out.total - cost, out.long_total);
    return out;
  }

 private:
  bool timed_;
  StageTime time_{};
  uint64_t readings_ = 0;
};

// How long each stage of one side took, in some rounds.
struct SideProfile {
  double seconds = 0;    // for which it was measured
  uint32_t threads = 1;  // of the application, which made the calls
  double cost_ns = 0;    // of measuring the end of a stage
  StageTime build{};
  std::array<StageTime, stage_count> stages{};

  void add(const SideProfile& other);
};
// Returns what lies between two moments of a device.
SideProfile between(const Profile& begin, const Profile& end, uint32_t threads);

void to_json(nlohmann::json& out, const SideProfile& in);
void from_json(const nlohmann::json& in, SideProfile& out);

// Both sides of a case. A side whose device is not profiled has none.
struct SideProfiles {
  std::optional<SideProfile> client;
  std::optional<SideProfile> server;

  void add(const SideProfiles& other);
};

// A row of the table of one side, without the cost of measuring, and without the times of more than
// a millisecond, in which a thread probably had no processor. Both have rows of their own. A wait
// is as long as it is.
struct StageRow {
  std::string_view stage;
  uint64_t times = 0;
  double total_ns = 0;
  double share = 0;  // of the measured time
};
// The rows of the calls of the application, which add up to the time of its threads, and of what
// the device did in these calls or beside them, which add up to the measured time.
struct StageRows {
  std::vector<StageRow> calls;
  std::vector<StageRow> device;
};
StageRows rows_of(const SideProfile& profile);

}  // namespace urma::apps::perf
