// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"
#include "engine/engine.h"
#include "tests/drivers/idle_port.h"

namespace urma::test {

// These engines are not part of a simulation.
class NotDriven final : public drivers::VirtualClock::Driven {
 public:
  Time pass(Time) override { return never; }
};

inline engine::EngineSettings idle_settings() {
  return {.life = Incarnation(77),
          .controller = &congestion::controllers().front(),
          .limits = {.jetties = 8, .peers = 32, .segments = 8}};
}

}  // namespace urma::test
