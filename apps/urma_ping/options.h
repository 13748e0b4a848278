// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "umdk/include/ub/umdk/urma/urma_types.h"

namespace urma::apps::ping {

struct Options {
  enum class Mode : uint8_t { ping, serve, help, version };

  Mode mode = Mode::ping;
  std::optional<urma_eid_t> eid;     // the destination; with `serve`, where to answer
  std::optional<urma_eid_t> source;  // the device to ping from
  std::optional<uint64_t> count;     // messages
  uint32_t bytes = 4;                // of each message
  double interval_seconds = 1;
  double timeout_seconds = 1;  // of each answer; 0: without limit
  std::optional<double> deadline_seconds;
  bool quiet = false;
  bool verbose = false;
};

// Reads the command line, or throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);

std::string help();

}  // namespace urma::apps::ping
