// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/urma_switch/forwarder.h"

namespace urma::apps::switches {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, run };

  Mode mode = Mode::help;
  // The device strings of all media, as udp:ADDRESS:PORT?ecn=yes.
  std::vector<std::string> devices;
  Forwarder::Settings forwarder = {};
  double interval_seconds = 0;  // between two reports; 0: only one, at the end
  bool json = false;
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

}  // namespace urma::apps::switches
