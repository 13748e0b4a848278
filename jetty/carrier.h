// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "urma/core/ids.h"
#include "urma/core/time.h"
#include "wire/frame.h"
#include "wire/memory_range.h"

namespace urma::jetty {

// Carries slices of writes and reads between the memory of this process and that of peers without
// packets, by a device that accesses both by itself. The engine implements it. Only the thread that
// runs the engine calls it; no function calls back.
class Carrier {
 public:
  virtual ~Carrier() = default;

  struct Task {
    PeerId peer;
    bool read = false;                // otherwise a write
    std::span<const Piece> pieces{};  // the local memory of the slice's work
    uint32_t from = 0;                // where in the pieces the slice begins
    MemoryRange remote{};             // of the slice
    uint32_t slice = 0;               // named by CarriedSlices::ended
    bool waits = false;  // its flow has as many slices at the device as one flow may have
  };

  // Works with fewer bytes are not carried.
  virtual uint32_t least_bytes() const = 0;
  // The most bytes of a slice.
  virtual uint32_t most_bytes() const = 0;
  // Returns whether it carries works whose buffers are memory of accelerators, instead of others.
  virtual bool of_accelerators() const = 0;
  enum class Begun : uint8_t {
    // The caller sends the slice in packets: no pair leads to the peer now, or the device cannot
    // access the memory at one of the ends.
    none,
    // The device could carry the slice, once another slice to this peer has ended.
    full,
    // The device carries the slice. The engine reports the end of the slice exactly once, when the
    // device no longer accesses the memory of this process for it.
    begun,
  };
  // Hands a slice to the device.
  virtual Begun begin(const Task& task, Time now) = 0;
  // Makes all slices that the device is carrying to this peer end soon, because a work cannot wait
  // for one of them any longer.
  virtual void stop(PeerId peer, Time now) = 0;
};

}  // namespace urma::jetty
