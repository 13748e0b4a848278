#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "drivers/device_reads.h"
#include "drivers/verbs/adapter.h"

namespace urma::drivers::verbs {

// The segments that the adapter reads by itself. Registering pins the memory, and takes a system
// call of up to milliseconds. The port owns it.
class RegisteredSegments final : public DeviceReads {
 public:
  explicit RegisteredSegments(const Adapter& adapter) : adapter_(adapter) {
    granted_.reserve(most_granted);
  }

  bool map(std::span<const std::byte> memory) override;
  void grant(std::span<const std::byte> memory) override;
  void revoke(std::span<const std::byte> memory) override;
  void unmap(std::span<const std::byte> memory) override;

  // Returns the key by which the adapter reads these bytes, if it may. Called by the thread that
  // runs the port.
  std::optional<uint32_t> key_of(const std::byte* data, size_t bytes) const {
    for (const Granted& one : granted_) {
      if (one.begin <= data && data + bytes <= one.end) return one.key;
    }
    return std::nullopt;
  }

 private:
  // More segments are copied from: each packet looks for its own one by one.
  static constexpr size_t most_granted = 128;

  struct Granted {
    const std::byte* begin;
    const std::byte* end;
    uint32_t key;
  };
  // Returns the registration of this memory, or the end. The mutex must be locked.
  std::vector<Memory>::iterator find(std::span<const std::byte> memory);

  const Adapter& adapter_;
  std::vector<Granted> granted_;  // used by the thread that runs the port
  std::mutex mutex_;              // of the rest; never held during a system call
  std::vector<Memory> mapped_;
};

}  // namespace urma::drivers::verbs
