// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "urma/core/rights.h"

namespace urma::drivers {

// The memory from which a device sends by reading it itself, as a NIC does by DMA. Data that lies
// elsewhere is copied. Functions that are marked "not in a pass" may take long; any thread may call
// them, and the port may be run meanwhile. The others are called by the thread that runs the port.
//
// Several segments may lie in the same memory. `rights` are those of the segment that is meant: two
// segments with the same memory and the same rights are alike.
class DeviceReads {
 public:
  virtual ~DeviceReads() = default;

  // Makes the memory readable for the device, which does not read it yet. Returns false if the
  // device cannot reach it, or has no room for it. Not to be called in a pass.
  virtual bool map(std::span<const std::byte> memory, Rights rights) = 0;
  // Lets the device read mapped memory: `send` need no longer copy data that lies there. If the
  // device has RemoteAccess, the devices of peers may access the memory as far as the rights allow.
  virtual void grant(std::span<const std::byte> memory, Rights rights) = 0;
  // Stops the device from reading this memory for frames that are sent from now on. For earlier
  // ones it may read the memory until they settle. Does nothing for memory that is not granted.
  virtual void revoke(std::span<const std::byte> memory, Rights rights) = 0;
  // Undoes `map`, after `revoke`, and once the frames that were sent before it have settled. When
  // it returns, no other device accesses the memory any longer. Not to be called in a pass.
  virtual void unmap(std::span<const std::byte> memory, Rights rights) = 0;
};

}  // namespace urma::drivers
