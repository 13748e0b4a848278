#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "engine/control_calls.h"

namespace urma::engine {

// The addresses at which a device is reached, one for each of its paths, and the calls that add and
// remove a path. It does not know which paths a peer uses. Called by any thread, but not on the
// data path.
class DevicePaths {
 public:
  // This object owns none of these, and all of them outlive it. In a simulation, `clock` runs the
  // passes of `driven` when something arrives at one of the addresses; else it is null.
  DevicePaths(Engine& engine, ControlCalls& calls, const drivers::PortFacts& facts,
              drivers::VirtualClock* clock, drivers::VirtualClock::Driven& driven);

  std::vector<Endpoint> endpoints() const;
  // One call at a time is served. Errors: unsupported, no_resources, and those of the driver.
  Result<Endpoint> add(std::string_view device);
  // The port that is given back has settled. Errors: invalid_argument.
  Result<void> remove(const Endpoint& endpoint);

 private:
  void note();

  Engine& engine_;
  ControlCalls& calls_;
  drivers::VirtualClock* const clock_;
  drivers::VirtualClock::Driven& driven_;
  std::mutex changing_;  // held while a path is added or removed
  mutable std::mutex mutex_;
  std::vector<Endpoint> endpoints_;  // the transport's, in its order; under `mutex_`
};

}  // namespace urma::engine
