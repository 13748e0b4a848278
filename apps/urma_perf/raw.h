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

// What the raw loops have in common, whatever they send over.

// What was received.
struct RawTally {
  uint64_t bytes = 0;
  int64_t first = 0;  // when
  int64_t last = 0;

  // What came before the first reading of the clock came before the time began.
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

// What an application that looks at its bytes does at least.
inline void read_words(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  size_t i = 0;
  for (; i + sizeof sum <= bytes.size(); i += sizeof sum) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    sum ^= word;
  }
  for (; i < bytes.size(); ++i) sum ^= std::to_integer<uint64_t>(bytes[i]);
  // As if somebody used it: otherwise nothing is read.
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
