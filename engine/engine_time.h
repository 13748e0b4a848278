// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "urma/core/time.h"

namespace urma::engine {

// The time of an engine: the machine's monotonic clock, except that each gap in which the engine
// should have run and did not (stopped, suspended, not polled) counts as at most `longest_gap`. So
// this engine does not time out its peers because its own process was stopped; the peers may still
// time out this process. A part of each gap counts, so that a device whose passes are always late
// reaches its deadlines: if each pass is at most L late, a duration of engine time lasts at most
// max(1, L / longest_gap) times as long.
class EngineTime {
 public:
  static constexpr Duration longest_gap = std::chrono::milliseconds(100);

  // Returns the engine time. `machine`: the monotonic clock. `planned`: when this pass was due
  // according to the last one, in engine time; `never` if none was due.
  Time advance(Time machine, Time planned) {
    Time now = machine - lost_;
    const Time due = std::max(last_, planned);
    if (planned != never && now > due && now - due > longest_gap) {
      lost_ += now - due - longest_gap;
      now = due + longest_gap;
    }
    last_ = std::max(last_, now);
    return last_;
  }
  // Converts engine time to the time of the monotonic clock, for sleeping.
  Time to_machine(Time engine) const { return engine == never ? never : engine + lost_; }

 private:
  Time last_{};
  Duration lost_{};
};

}  // namespace urma::engine
