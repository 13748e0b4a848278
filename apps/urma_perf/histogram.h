#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace urma::perf {

// Durations in nanoseconds, to within 1/128: values below 128 have a bucket each, above that every
// power of two is divided into 128. Merging loses nothing. One thread at a time.
class Histogram {
 public:
  Histogram();

  void record(uint64_t nanoseconds) { record(nanoseconds, 1); }
  void record(uint64_t nanoseconds, uint64_t times) {
    counts_[bucket(nanoseconds)] += times;
    count_ += times;
    if (nanoseconds > max_) max_ = nanoseconds;
  }
  void merge(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // The middle of the bucket below or in which this part (0 to 1) of the values lies; 0 when empty.
  uint64_t percentile(double part) const;

  static size_t bucket(uint64_t value);
  // The least value of a bucket.
  static uint64_t lower_edge(size_t bucket);

 private:
  static constexpr unsigned sub_bits = 7;

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace urma::perf
