#pragma once

#include <algorithm>

#include "urma/core/time.h"

namespace urma::engine {

// The machine's monotonic clock, of which each gap in which this engine should have run and did not
// (stopped, suspended, not polled) counts for `longest_gap` at most: what it did not live through
// does not count against its peers. They may still have given it up. The gaps are not left out
// entirely, so that a device all of whose passes are late reaches its deadlines, too: if each is at
// most L late, a duration of engine time lasts at most max(1, L / longest_gap) times as long.
class EngineTime {
 public:
  static constexpr Duration longest_gap = std::chrono::milliseconds(100);

  // `machine`: the clock. `planned`: when the last pass wanted to be followed by the next one, in
  // engine time; `never` if it had nothing to wait for.
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
  // Engine time to the machine's, for sleeping.
  Time to_machine(Time engine) const { return engine == never ? never : engine + lost_; }

 private:
  Time last_{};
  Duration lost_{};
};

}  // namespace urma::engine
