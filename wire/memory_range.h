// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/ids.h"
#include "urma/core/rights.h"

namespace urma {

// A part of a peer's segment, with the token that proves the right to use it.
struct MemoryRange {
  uint64_t address = 0;  // in the owner's address space
  uint64_t bytes = 0;    // not zero
  TokenId id{};
  TokenValue token{};
  Rights wanted = Rights::local_only;
};

}  // namespace urma
