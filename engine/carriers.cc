// SPDX-License-Identifier: Apache-2.0
#include "engine/carriers.h"

#include <array>

#include "drivers/accelerator_access.h"

namespace urma::engine {

Carriers::Carriers(const Uses& uses) : uses_(uses) {
  if (drivers::RemoteAccess* const access = uses.port.remote_access()) make_pairs(*access);
}

void Carriers::make_pairs(drivers::RemoteAccess& access) {
  pairs_.emplace(
      Pairs::Uses{access, uses_.lines, uses_.transport, uses_.slices, uses_.segments, uses_.judge});
}

void Carriers::use_accelerators() {
  if (pairs_ || uses_.port.only_packets()) return;
  accelerators_ = std::make_unique<drivers::AcceleratorAccess>(
      std::array{uses_.entropy.next(), uses_.entropy.next()});
  make_pairs(*accelerators_);
}

}  // namespace urma::engine
