#pragma once

#include <algorithm>

#include "urma/base/time.h"

namespace urma::engine {

// The machine's monotonic clock minus the gaps in which this engine should have run and did not
// (stopped, suspended, nobody polled): what it did not live through does not count against its
// peers. They may still have given it up.
class EngineTime {
 public:
  static constexpr Duration longest_gap = std::chrono::milliseconds(100);

  // `machine`: the clock. `planned`: when the last pass wanted to be followed by the next one, in
  // engine time; `never` if it had nothing to wait for.
  Time advance(Time machine, Time planned) {
    Time now = machine - lost_;
    const Time due = std::max(last_, planned);
    if (planned != never && now > due && now - due > longest_gap) {
      lost_ += now - due;
      now = due;
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
