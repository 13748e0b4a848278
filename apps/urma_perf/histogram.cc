// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace urma::apps::perf {

// Grows by whole powers of two, so that it seldom grows.
void Histogram::grow(size_t bucket) {
  constexpr size_t per_power = size_t{1} << sub_bits;
  counts_.resize((bucket / per_power + 1) * per_power);
}

size_t Histogram::bucket(uint64_t value) {
  constexpr uint64_t per_power = uint64_t{1} << sub_bits;
  if (value < per_power) return value;
  const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
  const unsigned shift = power - sub_bits;
  return (shift + 1) * per_power + ((value >> shift) - per_power);
}

uint64_t Histogram::lower_edge(size_t bucket) {
  constexpr uint64_t per_power = uint64_t{1} << sub_bits;
  if (bucket < per_power) return bucket;
  const uint64_t shift = bucket / per_power - 1;
  return (per_power + bucket % per_power) << shift;
}

uint64_t Histogram::upper_edge(size_t bucket) {
  static const size_t last = Histogram::bucket(UINT64_MAX);
  return bucket < last ? lower_edge(bucket + 1) - 1 : UINT64_MAX;
}

void Histogram::merge(const Histogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = max_ = 0;
}

uint64_t Histogram::percentile(double part) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_)));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < rank) continue;
    const uint64_t low = lower_edge(i);
    return std::min(low + (upper_edge(i) - low) / 2, max_);
  }
  return max_;
}

template <class Function>
double Histogram::sum(Function&& of) const {
  double out = 0;
  for_each([&](uint64_t low, uint64_t high, uint64_t count) {
    out += static_cast<double>(count) *
           of(static_cast<double>(low) + static_cast<double>(high - low) / 2);
  });
  return out;
}

double Histogram::mean() const {
  if (count_ == 0) return 0;
  return sum([](double value) { return value; }) / static_cast<double>(count_);
}

double Histogram::deviation() const {
  if (count_ == 0) return 0;
  const double middle = mean();
  const double squares = sum([&](double value) { return (value - middle) * (value - middle); });
  return std::sqrt(squares / static_cast<double>(count_));
}

}  // namespace urma::apps::perf
