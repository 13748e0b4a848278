// SPDX-License-Identifier: Apache-2.0
#include "base/timer_descriptor.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/above_standard.h"

namespace urma {

TimerDescriptor::~TimerDescriptor() {
  not_inherited_ = NotInherited();
  if (number_ >= 0) ::close(number_);
}

bool TimerDescriptor::make() {
  number_ = above_standard(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (number_ < 0) return false;
  not_inherited_ = NotInherited(number_);
  return true;
}

void TimerDescriptor::set(int number, Time when) {
  if (number < 0) return;
  itimerspec at{};
  if (when != never) {
    // The system takes zero for "never".
    const Duration since = std::max(when.time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    at.it_value.tv_sec = seconds.count();
    at.it_value.tv_nsec = (since - seconds).count();
  }
  timerfd_settime(number, TFD_TIMER_ABSTIME, &at, nullptr);
}

}  // namespace urma
