#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "urma/core/result.h"

namespace urma::drivers::dpdk {

// Bare frames over a port of DPDK, without IP and UB: the limit that `urma_perf --limit` measures.
// Data is copied into and out of buffers. One thread calls it.
class RawPort {
 public:
  virtual ~RawPort() = default;

  // Returns whether the peer is there. Looks for it if it is not.
  virtual bool is_up() = 0;
  // The most bytes of data in a frame.
  virtual size_t frame_bytes() const = 0;
  // Sends data in frames of at most `frame_bytes` bytes. Returns how many bytes it took, from the
  // front.
  virtual size_t send(std::span<const std::byte> data, size_t frame_bytes) = 0;
  // Returns how many bytes of arrived frames it wrote to `out`. Drops those for which `out` has no
  // room.
  virtual size_t receive(std::span<std::byte> out) = 0;
};

// Opens a port of the same kind, beside the one of this device, to the process that does the same
// with the peer of that port and the same number, which no other port has. Errors: those of
// urma::open, and unsupported for ports that cannot have another one beside them.
Result<std::unique_ptr<RawPort>> open_raw_port(std::string_view device, uint64_t number);

}  // namespace urma::drivers::dpdk
