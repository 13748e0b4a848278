// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "urma/core/endpoint.h"
#include "urma/core/handle.h"
#include "urma/core/rights.h"
#include "urma/core/time.h"
#include "wire/frame.h"

namespace urma::drivers {

// Access of a device to the memory of other devices of its kind, without packets of ours (RDMA). It
// leads over a *pair* of ends, one at each device. The *active* end's device reads and writes the
// memory of the *passive* end's process, as far as that has granted it (DeviceReads::grant). The
// caller brings the two ends together. Used by the thread that runs the port; no function blocks:
// what takes long is done meanwhile, and reported by `news`.
class RemoteAccess {
 public:
  virtual ~RemoteAccess() = default;

  // A description of an end for the other one. Only the driver understands it.
  using Description = std::array<std::byte, 40>;

  // Works with fewer bytes are better sent in packets.
  virtual uint32_t least_bytes() const = 0;

  // The most bytes of one transfer.
  virtual uint32_t most_bytes() const { return 64 * 1024; }
  // Returns whether transfers are between memory of accelerators (AcceleratorMemory) only, instead
  // of between memory of processes only.
  virtual bool of_accelerators() const { return false; }

  // The time that an end may take to stop. One that takes longer depends on a process that does not
  // run.
  virtual Duration longest_stop() const { return Duration::max(); }

  // Begins to make an end. `opens`: a passive one. Returns an empty handle if there are as many as
  // the device can have.
  virtual Handle make(bool opens) = 0;
  // Connects a new end to the other one, which must be at this address: otherwise it fails.
  virtual void connect(Handle end, const Description& other, const Eid& address) = 0;
  // Destroys an end, in whatever state it is. When `news` reports that it has stopped, everything
  // that was begun at it has ended, and nothing is accessed over it any longer.
  virtual void stop(Handle end) = 0;

  struct News {
    // made: `own` describes the end. failed: it cannot be made, connected or used any longer, and
    // has to be stopped. stopped: it does not exist any more.
    enum class What : uint8_t { made, connected, failed, stopped };
    Handle end;
    What what = What::failed;
    Description own{};
  };
  // Writes news to the front of `out`, and returns how many.
  virtual size_t news(std::span<News> out) = 0;

  // A part of the memory of the other device's process.
  struct There {
    uint64_t address = 0;  // in that process
    uint32_t key = 0;      // with which that device's process lets it be accessed
  };
  struct Task {
    bool read = false;
    std::span<const Piece> pieces{};  // of this process
    uint32_t from = 0;                // where in the pieces it begins
    uint32_t bytes = 0;
    There there{};
    uint32_t number = 0;  // the caller's
  };
  enum class Begun : uint8_t {
    begun,
    full,     // the end has no room for another transfer until one of its transfers has ended
    refused,  // the end is not connected, or the device may not access the pieces
  };
  // Begins a transfer over a connected end.
  virtual Begun begin(Handle end, const Task& task) = 0;

  // Transfers have been begun, and no more will be for the moment.
  virtual void flush() {}

  struct Ended {
    uint32_t number = 0;
    bool done = false;  // otherwise it is not known how much of it was done
  };
  // Writes transfers that have ended to the front of `out`, and returns how many. The memory of
  // this process is not accessed for them any longer.
  virtual size_t ended(std::span<Ended> out) = 0;

  // Returns after which time `news` and `ended` must be called again, because what they report
  // wakes no thread; nothing if reports do that, or none is to come.
  virtual std::optional<Duration> look_again() const { return std::nullopt; }

  // Memory of this process that other devices may access.
  struct Opened {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint32_t key = 0;
  };
  // Returns the key of granted memory that was mapped with these rights, if it allows the wanted
  // one. Any device that knows the key and has a pair to this one has access until
  // DeviceReads::unmap returns, so the caller decides which peers are told.
  virtual std::optional<Opened> opened(std::span<const std::byte> memory, Rights rights,
                                       Rights wanted) const = 0;
};

}  // namespace urma::drivers
