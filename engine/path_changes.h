// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/packet_port.h"
#include "engine/fills.h"
#include "transport/announced_paths.h"

namespace urma::engine {

// Adds and removes addresses of a device that has several ports. It changes the list of addresses
// that the transport announces and the set of ports in an order in which no packet is lost. It does
// not know how peers are informed, and does not open or destroy ports: the caller does, outside of
// passes. `Engine` owns it; only the thread
// that runs the engine calls it.
class PathChanges {
 public:
  // `ports`: those of the device's port, or null if it does not consist of several; then no other
  // function may be called. All parts outlive this object.
  PathChanges(drivers::PathPorts* ports, transport::AnnouncedPaths& announced, const Fills& fills)
      : ports_(ports), announced_(announced), fills_(fills) {}

  // Adds the port as a path. Returns false if there are `most_paths`, counting those whose removal
  // is in progress.
  bool add(drivers::PathPorts::Joining& joining, Time now);

  // The state of a removal in progress. The caller sets `endpoint`.
  struct Removal {
    Endpoint endpoint;

    // nowhere: the device does not have this address; last: the device has no other address.
    enum class Found : uint8_t { there, nowhere, last } found = Found::there;
    std::unique_ptr<drivers::PacketPort> port;  // the removed port, if `found` is `there`
    bool begun = false;
    bool closed = false;  // nothing is received there any longer
    uint8_t number = 0;   // of the path
    uint64_t fill = 0;    // the last fill that may have frames for the path
    Time since{};
    Time look_at{};  // when to check again whether the peers have noted the removal
  };
  // Removes a path. Returns false until it is done, and is then called again in later passes.
  bool remove(Removal& what, Time now);

 private:
  // Returns false if the path cannot be removed; `found` then says why.
  bool find(Removal& what) const;
  void begin(Removal& what, Time now);
  void close(Removal& what);

  drivers::PathPorts* const ports_;
  transport::AnnouncedPaths& announced_;
  const Fills& fills_;
  std::array<bool, most_paths> leaving_{};  // paths whose port is not returned yet
};

}  // namespace urma::engine
