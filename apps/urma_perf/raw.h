// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {

// The common part of the raw loops over sockets and over shared memory.

// Counts the received bytes, and the time from the first to the latest reading of the clock.
struct RawTally {
  uint64_t bytes = 0;
  int64_t first = 0;  // time of the first reading
  int64_t last = 0;

  // Bytes that arrived before the first reading of the clock do not count.
  void add(uint64_t more, int64_t at) {
    last = at;
    if (first == 0) {
      first = at;
    } else {
      bytes += more;
    }
  }
  double bytes_per_second() const {
    return last > first ? static_cast<double>(bytes) / seconds(last - first) : 0;
  }
};

// Reads all bytes: the least that an application does with received data.
inline void read_words(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  size_t i = 0;
  for (; i + sizeof sum <= bytes.size(); i += sizeof sum) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    sum ^= word;
  }
  for (; i < bytes.size(); ++i) sum ^= std::to_integer<uint64_t>(bytes[i]);
  // Tells the compiler that the sum is used: otherwise it would remove the reads.
  asm volatile("" : : "r"(sum));
}

// Sleeps for this long before a message. Returns the time at which the message leaves.
inline int64_t rest(int64_t time, int64_t at) {
  if (time == 0) return at;
  std::this_thread::sleep_for(std::chrono::nanoseconds(time));
  return now();
}

// Delays an answer for exactly this long, by spinning, because a sleep is not exact.
inline void hold(int64_t time) {
  if (time == 0) return;
  for (const int64_t end = now() + time; now() < end;) spin();
}

}  // namespace urma::apps::perf
