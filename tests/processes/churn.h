// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "urma/core/status.h"

namespace urma::test {

// Tells a writing process which memory to write to. The owner of the memory, which shares this
// object with the writer, changes it all the time.
struct Churn {
  std::atomic<uint64_t> number;  // odd while the other members change
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> token_id;
  std::atomic<uint32_t> token;

  std::atomic<uint64_t> seen;       // the last number that the writer has begun to use
  std::atomic<uint64_t> ended[32];  // the works of the writer, by status
};

}  // namespace urma::test
