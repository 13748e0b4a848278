// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "drivers/raw_port.h"
#include "urma/core/result.h"

namespace urma::drivers::dpdk {

// Opens a port of the same kind, beside the one of this device, to the process that does the same
// with the peer of that port and the same number, which no other port has. It has neither IP nor
// UB. Errors: those of urma::open, and unsupported for ports that cannot have another one beside
// them.
Result<std::unique_ptr<RawPort>> open_raw_port(std::string_view device, uint64_t number);

}  // namespace urma::drivers::dpdk
