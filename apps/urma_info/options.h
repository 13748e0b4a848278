// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace urma::apps::info {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { devices, device, config, doctor, error, help, version };

  Mode mode = Mode::devices;
  std::string what;  // the device, the status or the driver; may be empty
  bool json = false;
  bool verbose = false;
};

// Throws a Failure (usage) that says what is wrong and what would be valid.
Options parse_options(int count, char** arguments);

}  // namespace urma::apps::info
