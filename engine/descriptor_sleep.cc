// SPDX-License-Identifier: Apache-2.0
#include "engine/descriptor_sleep.h"

#include <algorithm>

namespace urma::engine {

// Checks for events after `drowse`, so that a thread that publishes one later sees a sleeper and
// wakes it. Frames that arrive after the pass signal the port, because the pass has armed it.
void DescriptorSleep::sleep_until_alarm(jetty::Jfc* jfc, Time until) {
  waker_.drowse();
  bool nothing = !waker_.needs_pass() || passes_.try_last_pass() == Passes::Ran::idle;
  nothing = nothing && (jfc != nullptr ? jfc->sleep_elsewhere() : keeper_.service_keeps());
  if (nothing && !engine_.has_work() && !keeper_.stopping()) {
    waker_.rest(std::min(until, passes_.alarm()));
  }
  passes_.slept();
  if (jfc != nullptr) jfc->awake();
  waker_.awake();
}

}  // namespace urma::engine
