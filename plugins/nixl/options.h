// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "plugins/nixl/nixl.h"
#include "urma/urma.hpp"

namespace urma::nixl {

// The options that a program sets for the backend (createBackend): each has a default.
struct Options {
  std::string device{};       // device: a device string; empty: as urma::open() chooses
  uint32_t depth = 1024;      // depth: works that are outstanding to one agent
  uint32_t timeout_ms = 900;  // timeout_ms: how long a work waits for a silent agent
  bool guarded = false;       // guarded: yes lets a program free memory that is registered
};

// Reads the options. Errors: invalid_argument. Those that other backends have are ignored.
Result<Options> read_options(const nixl_b_params_t& params);
// Returns the options with their defaults, as NIXL shows them to programs.
nixl_b_params_t default_options();

}  // namespace urma::nixl
