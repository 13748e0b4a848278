// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/entropy.h"
#include "urma/core/ids.h"

namespace urma::drivers {

// Returns a random EID in fd00::/8 with Sub-ID 1, for ports other than 4792, where the address
// alone does not identify the device.
inline Eid random_eid() {
  SecureEntropy entropy;
  Eid eid;
  for (std::byte& byte : eid.bytes) byte = static_cast<std::byte>(entropy.next32());
  eid.bytes[0] = std::byte{0xfd};
  eid.bytes[13] &= std::byte{0xf0};
  eid.bytes[14] = std::byte{0};
  eid.bytes[15] = std::byte{1};
  return eid;
}

}  // namespace urma::drivers
