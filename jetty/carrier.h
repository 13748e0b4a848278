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
    bool waits = false;               // its flow has enough slices at the device
  };

  // Works with fewer bytes are not carried.
  virtual uint32_t least_bytes() const = 0;
  // none: the slice must be sent in packets, because there is no way to the peer now, or the device
  // cannot access the memory at either end. full: it could be carried, but waits, or has no room
  // until a slice to this peer has ended. begun: the engine reports the end of the slice, exactly
  // once: when the device does not access the memory of this process for it any longer.
  enum class Begun : uint8_t { none, full, begun };
  virtual Begun begin(const Task& task, Time now) = 0;
  // A slice to this peer cannot be waited for: all that are being carried to it end soon.
  virtual void stop(PeerId peer, Time now) = 0;
};

}  // namespace urma::jetty
