// SPDX-License-Identifier: Apache-2.0
#include "engine/copy_choice.h"

#include <algorithm>
#include <cstring>

#include "base/bulk_copy.h"
#include "base/clock.h"
#include "base/region.h"

namespace urma::engine {
namespace {

// Works are copied in slices of this size.
constexpr size_t slice_bytes = 64 * 1024;
constexpr size_t huge_page = 2 << 20;
constexpr uint64_t candidates[] = {least_past_caches, 4 * least_past_caches};
constexpr uint64_t largest = candidates[std::size(candidates) - 1];

template <class Copy>
Duration time_of(Copy&& copy, std::byte* to, const std::byte* from, size_t bytes) {
  const Time begun = read_clock();
  for (size_t at = 0; at < bytes; at += slice_bytes) copy(to + at, from + at, slice_bytes);
  return read_clock() - begun;
}

uint64_t measure() {
  const Region source = Region::try_make(largest, huge_page);
  const Region target = Region::try_make(largest, huge_page);
  if (source.data() == nullptr || target.data() == nullptr) return UINT64_MAX;
  std::memset(source.data(), 1, largest);
  std::memset(target.data(), 1, largest);
  for (const uint64_t bytes : candidates) {
    // The fastest of several copies counts: on a busy machine, other processes run during some of
    // them.
    Duration plain = Duration::max();
    Duration past = Duration::max();
    for (int turn = 0; turn < 3; ++turn) {
      plain = std::min(plain, time_of(std::memcpy, target.data(), source.data(), bytes));
      past = std::min(past, time_of(copy_past_caches, target.data(), source.data(), bytes));
    }
    // A smaller advantage would be within the noise of the measurement.
    if (past < plain - plain / 10) return bytes;
  }
  return UINT64_MAX;
}

}  // namespace

uint64_t past_caches_from() {
  static const uint64_t from = measure();
  return from;
}

}  // namespace urma::engine
