// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/setup_message.h"

namespace urma::test {

// Returns what a simulated peer offers in an OPEN or an ACCEPT: packets of 1 KiB, and room for all
// that a test sends. The caller adds what names the peers and the channel.
inline SetupMessage usual_offer() {
  SetupMessage message;
  message.mtu_log2 = 10;
  message.receive_window = 2048;
  message.tassn_window = 1024;
  message.reads = 64;
  message.echoed_psn = 1;
  message.buffer_bytes = 1 << 20;
  return message;
}

}  // namespace urma::test
