// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "urma/urma.hpp"

namespace urma::nccl {

// Memory that NCCL has registered: NCCL has a pointer to it, as its memory handle.
struct Registration {
  std::optional<Segment> segment;
  std::byte* data = nullptr;
  size_t bytes = 0;
  uint32_t users = 0;  // how often it was registered
  // How often the object was used for memory that is deregistered by now: a receive that is
  // outstanding meanwhile notices it.
  std::atomic<uint64_t> generation{0};

  // Returns whether the range lies in this memory.
  bool contains(const void* begin, size_t length) const {
    const auto at = reinterpret_cast<uintptr_t>(begin);
    const auto first = reinterpret_cast<uintptr_t>(data);
    return at >= first && length <= bytes && at - first <= bytes - length;
  }
};

// The memory that is registered on the device. NCCL registers the same buffers once for each
// communicator and channel, so a range is registered once and counted. Any thread calls it.
class Registrations {
 public:
  // Errors: those of Device::register_memory.
  Result<Registration*> add(Device& device, void* data, size_t bytes);
  // Ends one use. After the last one, no peer accesses the memory. Errors: invalid_argument (the
  // handle is not registered), and those of Segment::unregister.
  Result<void> remove(Registration* registration);

 private:
  using Key = std::pair<void*, size_t>;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Registration>> all_;
  std::vector<std::unique_ptr<Registration>> unused_;  // never freed before the device is closed
};

}  // namespace urma::nccl
