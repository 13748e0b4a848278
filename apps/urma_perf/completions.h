#pragma once

#include <array>
#include <chrono>
#include <span>

#include "urma/urma.hpp"

namespace urma::perf {

// How completions are taken: an inlined device is polled, and so run, without pause; of a served
// one they are waited for, asleep.
class Taker {
 public:
  explicit Taker(bool polls) : polls_(polls) {}

  // Good until the next call. Empty when there is nothing (yet).
  template <class Source>  // Jetty or Jfc
  std::span<const Completion> take(Source& source) {
    if (!polls_) return source.wait(std::chrono::milliseconds(1));
    return look(source);
  }
  // Never sleeps.
  template <class Source>
  std::span<const Completion> look(Source& source) {
    return std::span<const Completion>(taken_).first(source.poll(taken_));
  }

 private:
  bool polls_;
  std::array<Completion, 64> taken_;
};

}  // namespace urma::perf
