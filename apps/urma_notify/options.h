#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/servers.h"
#include "apps/urma_notify/messages.h"

namespace urma::apps::notify {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, serve, send };

  Mode mode = Mode::help;
  std::string path;  // of the folder, or of the file
  std::string host = "localhost";
  std::string name;                  // the name at the receiver
  std::vector<std::string> devices;  // empty if the user named none: then the program chooses
  bool replace = false;
  uint64_t bytes_per_second = 0;  // bytes per second at most; 0 means as fast as possible
  uint64_t patience_seconds = 10;
  int speaks = protocol;  // tests give another version
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

// Describes the receiver, for a client that sends this file.
apps::Service service(const std::string& file = "FILE");

}  // namespace urma::apps::notify
