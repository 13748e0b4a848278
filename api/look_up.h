// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/location.h"
#include "base/timer_descriptor.h"
#include "engine/runner.h"
#include "urma/urma.hpp"

namespace urma {

// A search for the descriptor line that is published at a location: it reads this user's directory
// every 10 ms, asks the network, or both, until it finds the line or `options.limit` has passed.
// Called by one thread at a time.
class LookUp {
 public:
  // `device`: the device string by which processes of this host reach this device.
  LookUp(std::shared_ptr<engine::Runner> runner, std::string device, Location where,
         const ImportOptions& options);
  LookUp(const LookUp&) = delete;
  ~LookUp();

  // Looks once. Returns the line or the error once the search has ended; it is not called again
  // after that. Does not wait. `timer` becomes readable when the next step is due, unless the
  // device is simulated.
  std::optional<Result<std::string>> step(const TimerDescriptor& timer);
  // Searches until the end. No step was made before.
  Result<std::string> finish();

 private:
  using Ended = std::optional<Result<std::string>>;

  Ended look();
  bool check(engine::Engine& engine, Time now);
  Ended outcome();
  Time due() const;

  const std::shared_ptr<engine::Runner> runner_;
  const std::string device_;
  const Location where_;
  const Duration limit_;
  const bool own_;   // the location is an address of this device
  const bool here_;  // the directory shows what is published there
  const bool asks_;  // the network is asked
  Time until_;
  Time look_at_{};  // when the directory is read again
  Error last_;      // why the directory did not show the name
  engine::Question question_;
  bool begun_ = false;  // the question is in the engine's list, until `answered_`
  bool answered_ = false;
};

}  // namespace urma
