// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "urma/core/time.h"

namespace urma::apps::ping {

// Counts messages and their round trips.
class Statistics {
 public:
  void note_sent() { ++sent_; }
  void note_answer(Duration round_trip);

  uint64_t sent() const { return sent_; }

  // Returns the two lines that UMDK's urma_ping ends with. `whole`: how long all of it took.
  std::string text(Duration whole) const;

 private:
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  double least_ms_ = 0;
  double most_ms_ = 0;
  double mean_ms_ = 0;
  double squares_ = 0;  // the sum of the squares of the differences from the mean
};

// Returns a time in milliseconds.
double milliseconds(Duration time);

}  // namespace urma::apps::ping
