// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "plugins/nixl/nixl.h"
#include "urma/urma.hpp"

namespace urma::nixl {

// Memory of the host, or of a GPU.
inline bool is_supported(nixl_mem_t type) { return type == DRAM_SEG || type == VRAM_SEG; }

// Memory that this agent has registered. Peers reach it until this object is destroyed.
struct OwnMemory final : nixlBackendMD {
  explicit OwnMemory(Segment registered) : nixlBackendMD(true), segment(std::move(registered)) {}
  Segment segment;
};

// Memory of an agent, as a target of works.
struct TargetMemory final : nixlBackendMD {
  TargetMemory(const RemoteSegment& memory, uint64_t first_byte)
      : nixlBackendMD(false), segment(memory), first(first_byte) {}

  // Returns whether a range of addresses of the owner lies in the memory.
  bool covers(uint64_t address, uint64_t bytes) const {
    return address >= first && address - first <= segment.bytes &&
           bytes <= segment.bytes - (address - first);
  }

  RemoteSegment segment;
  uint64_t first;  // the address of its first byte, in the owner
};

}  // namespace urma::nixl
