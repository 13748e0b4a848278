// SPDX-License-Identifier: Apache-2.0
#include "jetty/leases.h"

#include <bit>

namespace urma::jetty {

Leases::Leases(uint16_t count, size_t behind)
    : LazyBlock(count == 0 && behind == 0
                    ? 0
                    : sizeof(Lines) + rings * std::bit_ceil<size_t>(count) * sizeof(uint16_t) +
                          behind),
      mask_(static_cast<uint16_t>(std::bit_ceil<uint32_t>(count) - 1)),
      count_(count) {
  static_assert(sizeof(Leases) == 16);
}

}  // namespace urma::jetty
