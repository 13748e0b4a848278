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
  std::string host = "localhost";
  std::vector<std::string> devices;  // empty if the user named none: then the program chooses
  std::optional<uint64_t> count;     // of messages
  std::optional<uint64_t> producers;
  std::vector<uint64_t> topics = {0};  // the producer uses them in turn
  uint64_t rate = 0;                   // messages per second at most; 0 means as fast as possible
  uint64_t work_us = 0;                // additional time to handle a message
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

// Describes the consumer, for its producers.
apps::Service service();

}  // namespace urma::apps::feed
