// SPDX-License-Identifier: Apache-2.0
#include "engine/control_calls.h"

namespace urma::engine {

void ControlCalls::carry(Command& command) {
  constexpr Duration patience = Passes::command_patience;
  engine_.commands().push(command);
  if (clock_ != nullptr) {
    // Time advances only as far as it must for the command to be done.
    while (!command.is_done()) {
      passes_.try_pass(nullptr);
      if (!command.is_done()) clock_->step(clock_->now() + patience);
    }
    return;
  }
  waker_.wake();
  while (!command.is_done()) {
    passes_.try_pass(nullptr);
    if (!command.is_done()) command.await(patience);
  }
}

}  // namespace urma::engine
