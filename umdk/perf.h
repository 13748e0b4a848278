// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/clock.h"
#include "umdk/include/ub/umdk/urma/urma_api.h"
#include "umdk/include/ub/umdk/urma/urma_perf.h"

namespace urma::umdk {

extern std::atomic<bool> is_measured;  // whether calls are measured at present
// Counts one call. Any thread calls it.
void count_call(urma_perf_record_type_t type, Duration took);

// Measures a call from here to the end of the scope.
class Measured {
 public:
  explicit Measured(urma_perf_record_type_t type) : type_(type) {
    if (is_measured.load(std::memory_order_relaxed)) begun_ = read_clock();
  }
  ~Measured() {
    if (begun_ != Time{}) count_call(type_, read_clock() - begun_);
  }
  Measured(const Measured&) = delete;

 private:
  const urma_perf_record_type_t type_;
  Time begun_{};  // zero if the call is not measured
};

}  // namespace urma::umdk
