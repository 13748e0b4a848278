// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "drivers/device_reads.h"
#include "drivers/remote_access.h"

namespace urma::drivers::sim {

// The memory of a process that a simulated device may access, and that it has opened to the devices
// of peers. A key is valid from `grant` until `unmap`. The port owns it.
class OpenMemory final : public DeviceReads {
 public:
  // DeviceReads
  bool map(std::span<const std::byte> memory, Rights rights) override;
  void grant(std::span<const std::byte> memory, Rights rights) override;
  void revoke(std::span<const std::byte> memory, Rights rights) override;
  void unmap(std::span<const std::byte> memory, Rights rights) override;

  // Returns whether the device may access these bytes for works of its own process.
  bool covers(const std::byte* data, size_t bytes) const;
  // As RemoteAccess::opened.
  std::optional<RemoteAccess::Opened> opened(std::span<const std::byte> memory, Rights rights,
                                             Rights wanted) const;
  // Returns where the bytes lie that a peer accesses with this key, or null if it may not.
  std::byte* at(const RemoteAccess::There& there, uint64_t bytes, bool write) const;

 private:
  struct Mapped {
    std::span<const std::byte> memory;
    Rights rights;
    uint32_t key;
    bool granted = false;  // works of this process may begin to use it, and keys are handed out
    bool keyed = false;    // it was granted
  };
  std::vector<Mapped> mapped_;
  uint32_t next_key_ = 1;
};

}  // namespace urma::drivers::sim
