// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/not_inherited.h"
#include "urma/core/time.h"

namespace urma {

// A descriptor that becomes readable at a time, for threads that sleep at several descriptors.
class TimerDescriptor {
 public:
  TimerDescriptor() = default;
  TimerDescriptor(const TimerDescriptor&) = delete;
  ~TimerDescriptor();

  // Makes the descriptor. Returns false if the system makes none; errno says why. Throws
  // std::bad_alloc.
  bool make();
  // Returns the descriptor; negative if there is none.
  int number() const { return number_; }
  // Makes it unreadable until this time; `never` for until the next call. Does nothing if there is
  // no descriptor.
  void set(Time when) const { set(number_, when); }
  // Makes the timer with this descriptor readable immediately. Any thread may call it.
  static void ring(int number) { set(number, Time{}); }

 private:
  static void set(int number, Time when);

  int number_ = -1;
  NotInherited not_inherited_;
};

}  // namespace urma
