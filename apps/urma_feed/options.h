// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/servers.h"

namespace urma::apps::feed {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, consume, produce };

  Mode mode = Mode::help;
  std::vector<std::string> hosts = {"localhost"};  // produce: at least one
  std::vector<std::string> devices;  // empty if the user named none: then the program chooses
  std::optional<uint64_t> count;     // of messages
  std::optional<uint64_t> producers;
  std::vector<uint64_t> topics = {0};  // the producer uses them in turn
  uint64_t rate = 0;                   // messages per second at most; 0 means as fast as possible
  uint64_t work_us = 0;                // additional time to handle a message
  // produce: messages come from standard input, as lines, or as records of this size if it is not
  // 0.
  bool input = false;
  uint64_t record_bytes = 0;
  uint64_t patience_seconds = 10;  // how long produce waits for a new consumer
  bool print = false;              // consume: payloads go to standard output
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

// Describes the consumer, for its producers.
apps::Service service();

}  // namespace urma::apps::feed
