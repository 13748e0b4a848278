// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "urma/core/result.h"
#include "urma/core/time.h"

namespace urma::nccl {

// The settings of the user: environment variables. docs/nccl.md explains them.
struct Settings {
  std::string device;      // URMA_NCCL_DEVICE; if empty, the device that urma::open chooses
  Duration timeout{};      // URMA_NCCL_TIMEOUT: a request ends this long after its peer has died
  int speed_mbps = 0;      // URMA_NCCL_SPEED; 0: the plugin's guess
  size_t stage_bytes = 0;  // URMA_NCCL_STAGE: of each receiver, in a window
  bool copier = false;     // URMA_NCCL_COPIER: whether a thread of the plugin helps to copy
};

// Reads the environment. Errors: invalid_argument.
Result<Settings> read_settings();
// Returns the device string with the IP address of the interface, if it is "udp:INTERFACE" and
// there is such an interface; otherwise the device string itself. Errors: not_found (the interface
// has no IP address).
Result<std::string> with_address(const std::string& device);

}  // namespace urma::nccl
