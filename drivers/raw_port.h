// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace urma::drivers {

// Bare frames over a port, without UB: the limit that `urma_perf --limit` measures. Data is copied
// into and out of buffers. One thread calls it.
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

}  // namespace urma::drivers
