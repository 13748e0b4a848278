// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <mutex>
#include <vector>

#include "drivers/device_reads.h"

namespace urma::drivers::dpdk {

// The memory of the application that a device reads by DMA. A device maps whole pages, and none
// twice, so segments on the same pages share a mapping. The packet port owns it.
class ReadableMemory final : public DeviceReads {
 public:
  // Tells the device which pages it may read.
  class Device {
   public:
    virtual ~Device() = default;
    // Returns false if it cannot map them.
    virtual bool map_pages(std::span<const std::byte> pages) = 0;
    virtual void unmap_pages(std::span<const std::byte> pages) = 0;
  };
  explicit ReadableMemory(Device& device);
  // Unmaps everything, except in a forked child.
  ~ReadableMemory() override;

  bool map(std::span<const std::byte> memory, Rights rights) override;
  void unmap(std::span<const std::byte> memory, Rights rights) override;
  void grant(std::span<const std::byte> memory, Rights rights) override;
  void revoke(std::span<const std::byte> memory, Rights rights) override;

  // Returns whether the device may read these bytes. Called by the thread that runs the port.
  bool has(const std::byte* data, size_t bytes) const;

 private:
  // More segments are copied from. EAL has a similar limit.
  static constexpr size_t most_granted = 128;

  struct Range {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    unsigned users = 1;  // segments

    bool contains(const Range& other) const { return begin <= other.begin && other.end <= end; }
    std::span<const std::byte> bytes() const { return {begin, end}; }
  };
  static Range range_of(std::span<const std::byte> memory) {
    return {memory.data(), memory.data() + memory.size()};
  }

  const pid_t maker_ = getpid();
  Device& device_;
  std::vector<Range> granted_;  // used by the thread that runs the port
  std::mutex mutex_;            // of the rest; not taken in a pass
  std::vector<Range> mapped_;   // whole pages
};

}  // namespace urma::drivers::dpdk
