// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "drivers/device_reads.h"
#include "drivers/remote_access.h"
#include "drivers/verbs/adapter.h"

namespace urma::drivers::verbs {

// The segments that the adapter accesses by itself. Registering pins the memory, and takes a system
// call of up to milliseconds. The port owns it.
class RegisteredSegments final : public DeviceReads {
 public:
  // `opens`: the adapters of peers access the segments, too, as far as their rights allow.
  RegisteredSegments(const Adapter& adapter, bool opens) : adapter_(adapter), opens_(opens) {
    granted_.reserve(most_granted);
  }

  bool map(std::span<const std::byte> memory, Rights rights) override;
  void grant(std::span<const std::byte> memory, Rights rights) override;
  void revoke(std::span<const std::byte> memory, Rights rights) override;
  void unmap(std::span<const std::byte> memory, Rights rights) override;

  // ---- called by the thread that runs the port

  // Returns the key by which the adapter reads these bytes, or also writes them, if it may.
  std::optional<uint32_t> key_of(const std::byte* data, size_t bytes, bool writes = false) const {
    const Granted* const found = find_granted(data, bytes);
    if (found == nullptr || (writes && !found->writable)) return std::nullopt;
    return found->key;
  }
  // As RemoteAccess::opened.
  std::optional<RemoteAccess::Opened> opened(std::span<const std::byte> memory, Rights rights,
                                             Rights wanted) const;
  // The adapters of peers access nothing of what is mapped from now on.
  void open_nothing() { opens_ = false; }

 private:
  // More segments are copied from: each packet looks for its own one by one.
  static constexpr size_t most_granted = 128;

  struct Mapped {
    Memory memory;
    Rights rights;         // as the segment has them
    bool opened;           // to the adapters of peers
    bool writable;         // by our own
    bool granted = false;  // between `grant` and `revoke`
  };
  struct Granted {
    const std::byte* begin;
    const std::byte* end;
    uint32_t key;
    uint32_t remote_key;
    Rights rights;
    bool opened;
    bool writable;
  };
  // Returns a registration of this memory that is not granted, or the end. The mutex must be
  // locked.
  std::vector<Mapped>::iterator find(std::span<const std::byte> memory, Rights rights);
  // Returns the grant of exactly this segment, or null.
  const Granted* find_whole(std::span<const std::byte> memory, Rights rights) const;
  // Returns a grant that contains these bytes, or null.
  const Granted* find_granted(const std::byte* data, size_t bytes) const {
    const Granted* found = nullptr;
    for (const Granted& one : granted_) {
      if (one.begin > data || data + bytes > one.end) continue;
      found = &one;
      if (one.writable) break;
    }
    return found;
  }

  const Adapter& adapter_;
  bool opens_;
  std::vector<Granted> granted_;  // used by the thread that runs the port
  std::mutex mutex_;              // of the rest; never held during a system call
  std::vector<Mapped> mapped_;
};

}  // namespace urma::drivers::verbs
