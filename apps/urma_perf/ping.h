// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// The least, mean and largest of some times, and their standard deviation.
class RoundTrips {
 public:
  void add(double us);

  uint64_t count() const { return count_; }
  double least_us() const { return least_; }
  double most_us() const { return most_; }
  double mean_us() const;
  double deviation_us() const;

 private:
  uint64_t count_ = 0;
  double least_ = 0;
  double most_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // the sum of the squares of the differences from the mean
};

// Asks the server a question once a second, until Ctrl-C or --count questions, and prints how long
// each answer took. A server that ends and is started again is found again. Returns Exit::error if
// no question was answered.
Exit ping(const Options& options);

}  // namespace urma::apps::perf
