#pragma once

#include <atomic>
#include <cstdint>

#include "urma/core/status.h"

namespace urma::test {

// Where a process writes without end, told anew all the time, by one that shares this with it.
struct Churn {
  std::atomic<uint64_t> number;  // odd while the others change
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> token_id;
  std::atomic<uint32_t> token;

  std::atomic<uint64_t> seen;       // the last number it has begun to use
  std::atomic<uint64_t> ended[32];  // its works, by status
};

}  // namespace urma::test
