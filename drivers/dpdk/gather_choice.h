// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drivers/dpdk/ether_device.h"
#include "drivers/dpdk/gatherer.h"

namespace urma::drivers::dpdk {

// Which pieces of packets a port reads where they are.
struct GatherChoice {
  uint32_t least_bytes = Gatherer::Settings::none;
  std::string why;  // for people
};
// Decides it by what the port can do, and by what copying and chaining cost in this process, which
// it measures in about 1 ms. It sends no frame. A checksum that is computed in software reads the
// bytes in either case. `most_bytes`: of a piece.
GatherChoice choose_gathering(const Settings& settings, EtherDevice& device, uint32_t most_bytes);

}  // namespace urma::drivers::dpdk
