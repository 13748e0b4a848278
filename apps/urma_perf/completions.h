// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <span>

#include "apps/urma_perf/clock.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

// Takes completions. An inlined device is polled without pause, because polling runs it; a served
// device is waited for, asleep.
class Taker {
 public:
  explicit Taker(bool polls) : polls_(polls) {}

  // The result is valid until the next call. It is empty if there is nothing yet.
  template <class Source>  // Jetty or Jfc
  std::span<const Completion> take(Source& source) {
    if (!polls_) return source.wait(std::chrono::milliseconds(1));
    return look(source);
  }
  // The same for a caller that has something to do at this time. Sleeping threads wake up late, so
  // this one sleeps only if there is enough time.
  template <class Source>
  std::span<const Completion> take_before(Source& source, int64_t until) {
    constexpr int64_t late = 200 * microsecond;
    constexpr int64_t longest = millisecond;
    const int64_t spare = polls_ ? 0 : std::min(until - late - now(), longest);
    if (spare <= 0) return look(source);
    return source.wait(std::chrono::nanoseconds(spare));
  }
  // Polls, and never sleeps.
  template <class Source>
  std::span<const Completion> look(Source& source) {
    return std::span<const Completion>(taken_).first(source.poll(taken_));
  }

 private:
  bool polls_;
  std::array<Completion, 64> taken_;
};

}  // namespace urma::apps::perf
