// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "urma/core/result.h"

struct rte_mempool;

namespace urma::drivers::dpdk {

// Owns a pool of packet buffers. If buffers are still in use when it is destroyed, the pool stays
// until they have come back: two ports of net_ring exchange buffers. Move only.
class MbufPool {
 public:
  struct Shape {
    uint32_t count = 0;  // of the buffers, at least
    uint32_t room = 0;   // for the bytes of a packet, behind the head room
    // Whether the buffers lie one behind the other. Otherwise none crosses a page boundary, so that
    // gaps are between them.
    bool dense = false;
  };
  // Errors: no_resources.
  static Result<MbufPool> make(const Shape& shape);
  MbufPool(MbufPool&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  MbufPool& operator=(MbufPool&&) = delete;
  ~MbufPool();

  rte_mempool* get() const { return pool_; }

  // Frees pools whose buffers have come back, and returns how many buffers are missing in those
  // that remain. Any thread may call it.
  static uint64_t missing();

 private:
  explicit MbufPool(rte_mempool* pool) : pool_(pool) {}

  rte_mempool* pool_;
};

}  // namespace urma::drivers::dpdk
