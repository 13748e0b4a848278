// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace urma::apps::perf {

// A histogram of durations in nanoseconds, or in another unit that the user chooses. It is exact to
// 1/1024, three digits: values below 1024 have a bucket each, and above that every power of two is
// divided into 1024 buckets. Merging is exact. Recording a value above all earlier ones may
// allocate. Not for concurrent use.
class Histogram {
 public:
  void record(uint64_t value) { record(value, 1); }
  void record(uint64_t value, uint64_t times) {
    const size_t at = bucket(value);
    if (at >= counts_.size()) grow(at);
    counts_[at] += times;
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

  // Calls each(least value, largest value, count) for each bucket that has values, in their order.
  template <class Function>
  void for_each(Function&& each) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0) each(lower_edge(i), upper_edge(i), counts_[i]);
    }
  }

  static size_t bucket(uint64_t value);
  // Return the smallest and the largest value of a bucket.
  static uint64_t lower_edge(size_t bucket);
  static uint64_t upper_edge(size_t bucket);

 private:
  static constexpr unsigned sub_bits = 10;

  void grow(size_t bucket);
  // Returns the sum of of(value) over all values, each taken as the middle of its bucket.
  template <class Function>
  double sum(Function&& of) const;

  std::vector<uint64_t> counts_;  // up to the largest power of two that has a value
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace urma::apps::perf
