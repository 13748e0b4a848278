// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/urma_perf/histogram.h"

namespace urma::apps::perf {

// The times of a list of blocks: of making its works, of posting them, and of the write beside it.
struct PlanTimes {
  Histogram prep;
  Histogram post;
  Histogram one_write;

  void clear() {
    for (Histogram* const each : {&prep, &post, &one_write}) each->clear();
  }
  void add(const PlanTimes& other) {
    prep.merge(other.prep);
    post.merge(other.post);
    one_write.merge(other.one_write);
  }
};

}  // namespace urma::apps::perf
