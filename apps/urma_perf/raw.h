#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/machine.h"

namespace urma::perf {

// The common part of the raw loops over sockets and over shared memory.

// Counts what was received, and the time from the first to the latest reading of the clock.
struct RawTally {
  uint64_t bytes = 0;
  int64_t first = 0;  // when
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

// Reads all bytes, the least that an application does that uses them.
inline void read_words(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  size_t i = 0;
  for (; i + sizeof sum <= bytes.size(); i += sizeof sum) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    sum ^= word;
  }
  for (; i < bytes.size(); ++i) sum ^= std::to_integer<uint64_t>(bytes[i]);
  // Makes the sum observable: otherwise the compiler would remove the reads.
  asm volatile("" : : "r"(sum));
}

// Sleeps for so long before a message; returns when it leaves.
inline int64_t rest(int64_t time, int64_t at) {
  if (time == 0) return at;
  std::this_thread::sleep_for(std::chrono::nanoseconds(time));
  return now();
}

// Keeps an answer back for exactly so long, which no sleep could.
inline void hold(int64_t time) {
  if (time == 0) return;
  for (const int64_t end = now() + time; now() < end;) spin();
}

}  // namespace urma::perf
