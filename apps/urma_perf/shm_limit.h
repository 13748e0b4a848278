// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "apps/urma_perf/limit.h"
#include "apps/urma_perf/raw_shm.h"
#include "apps/urma_perf/shm_window.h"

namespace urma::apps::perf {

// The raw loops that a case is compared with.
struct ShmPlan {
  LanePlan there;  // from the client to the server
  LanePlan back;
  std::string_view pattern;
  bool copies =
      false;  // there are no lanes: the client copies to and from memory that both sides map
};
ShmPlan shm_plan(const Case& what);

// The limit in shared memory, which the client makes and the server opens.
class ShmLimit final : public Limit {
 public:
  ShmLimit(Side& side, Place place);

  std::string told() const override { return window_ ? window_->name() : ""; }
  void meet(const std::string& told) override;
  std::string pattern() const override { return std::string(plan_.pattern); }
  std::string why_silent() const override;

  void begin() override;
  void run(int64_t until) override;

  // A copier also does what a receiver would do.
  bool receives() const override { return receiver_ || copier_; }
  RawTally tally() const override {
    if (copier_) return copier_->tally;
    return receiver_ ? receiver_->tally : RawTally{};
  }

 private:
  uint64_t window_bytes() const;
  void make_copier();
  void make_loops(const Lane& there, const Lane& back);

  Side& side_;
  Place place_;
  ShmPlan plan_;
  std::optional<ShmWindow> window_;
  // These continue where the last round ended, because the counts of both sides agree.
  std::optional<ShmPing> ping_;
  std::optional<ShmPong> pong_;
  std::optional<ShmSender> sender_;
  std::optional<ShmReceiver> receiver_;
  std::optional<ShmCopier> copier_;
};

}  // namespace urma::apps::perf
