// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "urma/core/path.h"
#include "urma/core/result.h"

namespace urma::drivers {

class PacketPort;

// A port that consists of several ports, which can be added and removed while it is open. The
// thread that runs the port calls all functions except `prepare`.
class PathPorts {
 public:
  virtual ~PathPorts() = default;

  // A port that is open, and can be added.
  class Joining {
   public:
    virtual ~Joining() = default;
    virtual const Endpoint& self() const = 0;
  };
  // Opens a port. Any thread may call it, but not in a pass, because it may take long. Errors:
  // those of open.
  virtual Result<std::unique_ptr<Joining>> prepare(std::string_view device) = 0;
  // Adds the port as path `number`, which must be unused.
  virtual void join(uint8_t number, Joining& joining) = 0;
  // Stops receiving from this path.
  virtual void stop(uint8_t number) = 0;
  // Removes the port and returns it, after `stop`, and once all frames that it was given have
  // settled.
  virtual std::unique_ptr<PacketPort> part(uint8_t number) = 0;
};

}  // namespace urma::drivers
