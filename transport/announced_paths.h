// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/time.h"
#include "wire/path_list.h"

namespace urma::transport {

// The addresses of this device, as its peers know them. The transport implements it for the layer
// above. Only the thread that runs the engine calls it.
class AnnouncedPaths {
 public:
  virtual ~AnnouncedPaths() = default;

  // Returns the addresses at which this device can be reached now.
  virtual const PathList& paths() const = 0;
  // Replaces the addresses: packets that are sent from now on use these paths, and the peers are
  // notified. Not for a device that was opened with `Settings::paths` empty. An address that is
  // removed still receives and sends until `close_path`.
  virtual void announce_paths(const PathList& paths, Time now) = 0;
  // Returns whether all peers with a channel have confirmed the latest list.
  virtual bool paths_confirmed() = 0;
  virtual void close_path(uint8_t number) = 0;
};

}  // namespace urma::transport
