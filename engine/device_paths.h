// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "engine/control_calls.h"

namespace urma::engine {

// Adds and removes the paths of a device, and knows the addresses at which it is reached, one for
// each path. It does not know which paths a peer uses. Called by any thread, but not on the data
// path.
class DevicePaths {
 public:
  // This object owns none of these, and all of them outlive it. In a simulation, `clock` runs the
  // passes of `driven` when something arrives at one of the addresses; else it is null.
  DevicePaths(Engine& engine, ControlCalls& calls, const drivers::PortFacts& facts,
              drivers::VirtualClock* clock, drivers::VirtualClock::Driven& driven);

  std::vector<Endpoint> endpoints() const;
  // Opens `device` as a further path and returns its address. Only one path is added or removed at
  // a time. Errors: unsupported, no_resources, and those of the driver.
  Result<Endpoint> add(std::string_view device);
  // Removes the path, and destroys its port once the frames filled for it have settled. Errors:
  // invalid_argument.
  Result<void> remove(const Endpoint& endpoint);

 private:
  void note();

  Engine& engine_;
  ControlCalls& calls_;
  drivers::VirtualClock* const clock_;
  drivers::VirtualClock::Driven& driven_;
  std::mutex changing_;  // held while a path is added or removed
  mutable std::mutex mutex_;
  std::vector<Endpoint> endpoints_;  // as the transport lists them; guarded by `mutex_`
};

}  // namespace urma::engine
