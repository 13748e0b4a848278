#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace urma::apps::perf {

// A histogram of durations in nanoseconds, or in another unit that the user chooses. It is exact to
// 1/128: values below 128 have a bucket each, and above that every power of two is divided into 128
// buckets. Merging is exact. Not for concurrent use.
class Histogram {
 public:
  Histogram();

  void record(uint64_t value) { record(value, 1); }
  void record(uint64_t value, uint64_t times) {
    counts_[bucket(value)] += times;
    count_ += times;
    if (value > max_) max_ = value;
  }
  void merge(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // Returns the middle of the bucket that contains this percentile (0 to 1) of the values; 0 if
  // there are none.
  uint64_t percentile(double part) const;
  // Return the mean and the standard deviation, for which each value counts as the middle of its
  // bucket; 0 if the histogram is empty.
  double mean() const;
  double deviation() const;

  static size_t bucket(uint64_t value);
  // Returns the smallest value of a bucket.
  static uint64_t lower_edge(size_t bucket);

 private:
  static constexpr unsigned sub_bits = 7;

  // Returns the sum of of(value) over all values, each taken as the middle of its bucket.
  template <class Function>
  double sum(Function&& of) const;

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace urma::apps::perf
